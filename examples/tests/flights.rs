//! The main job as a program: the excerpt of real departures in all modes, and its first errors.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn flights(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_flights"))
        .args(arguments)
        .env_remove("SLACKWATER_CONF_FILE")
        .output()
        .expect("the program starts")
}

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data").join(name)
}

fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).expect("the file is there")).expect("it is JSON")
}

/// What the program says when it refuses: code 1 and one paragraph that names `what`.
#[track_caller]
fn refuses(arguments: &[&str], what: &[&str]) {
    let output = flights(arguments);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {text}");
    let text = text.trim();
    assert!(!text.contains("\n\n") && !text.contains("panicked"), "{arguments:?}: {text}");
    for word in what {
        assert!(text.contains(word), "{arguments:?}: `{word}` is not in: {text}");
    }
}

#[test]
fn every_mode_computes_what_python_does_from_the_excerpt() {
    let expected = read_json(&data("flights-excerpt.expected.json"));
    let expected = expected["results"].as_array().expect("a list");
    let directory = tempfile::tempdir().expect("a directory");
    let input = data("flights-excerpt.csv");
    let input = input.to_str().expect("a path in UTF-8");
    for (mode, state) in [
        ("stream", "heap"),
        ("stream", "disk"),
        ("batch", "disk"),
        ("mixed", "heap"),
        ("mixed", "disk"),
    ] {
        let json = directory.path().join(format!("{mode}-{state}.json"));
        let file = json.to_str().expect("a path in UTF-8");
        let output = flights(&["--input", input, "--mode", mode, "--state", state, "--json", file]);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{mode} over {state}: {text}");
        let found = read_json(&json);
        let results = found["results"].as_array().expect("a list");
        assert_eq!(results.len(), expected.len(), "{mode} over {state}");
        for (found, expected) in results.iter().zip(expected) {
            for field in ["carrier", "origin", "dest", "flights"] {
                assert_eq!(found[field], expected[field], "{mode} over {state}");
            }
            for field in ["mean_delay", "worst_delay"] {
                let (a, b) = (found[field].as_f64(), expected[field].as_f64());
                let near = match (a, b) {
                    (Some(a), Some(b)) => (a - b).abs() <= 1e-9 * b.abs().max(1.0),
                    (a, b) => a.is_none() && b.is_none(),
                };
                assert!(near, "{mode} over {state}: {field} of {expected}: {a:?}, not {b:?}");
            }
        }
        let report = &found["report"];
        assert_eq!(report["phases"][0]["rows"], 1_974, "{mode} over {state}");
        if mode == "mixed" {
            assert_eq!(report["treatment"], "combine");
            let keys = report["keys"].as_u64().expect("a number");
            assert!(report["state_reads"].as_u64().expect("a number") <= keys);
            assert!(report["state_writes"].as_u64().expect("a number") <= keys);
        }
    }
}

#[test]
fn generated_departures_agree_in_stream_and_mixed_mode() {
    let output = flights(&["--compare", "--rows", "60000", "--keys", "700", "--memory", "64kb"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("times as fast as stream"), "{text}");
}

#[test]
fn what_a_user_gets_wrong_first_is_named_in_one_paragraph() {
    refuses(&["--input", "no/such/file.csv"], &["no/such/file.csv"]);
    refuses(&["--rows", "10", "--parallelism", "0"], &["parallelism", "0"]);
    refuses(&["--rowz", "10"], &["--rowz"]);
    refuses(&["--rows", "10", "-o", "execution.runtime-mod=batch"], &["execution.runtime-mode"]);
    refuses(&["--rows", "10", "-o", "io.tmp.dirs=/proc/nowhere"], &["/proc/nowhere"]);
    refuses(
        &["--rows", "10", "-o", "taskmanager.memory.managed.size=1kb"],
        &["taskmanager.memory.managed.size", "delays of route"],
    );
}

#[test]
fn a_bad_row_is_named_by_line_column_and_text() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("bad.csv");
    let rows = "carrier,origin,dest,dep_delay\nUA,EWR,IAH,2\nUA,EWR,IAH,soon\n";
    std::fs::write(&file, rows).expect("a file");
    let path = file.to_str().expect("a path in UTF-8");
    refuses(&["--input", path], &[path, "line 3", "dep_delay", "soon"]);
}

/// Killed in its live phase and resumed, it computes what a run in one piece does.
#[test]
fn a_killed_run_is_resumed_with_the_results_of_a_run_in_one_piece() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str| directory.path().join(name).to_str().expect("UTF-8").to_owned();
    let checkpoints = file("checkpoints");
    let run = ["--rows", "50000", "--keys", "300", "--live", "2", "--json"];
    let keeps =
        ["--checkpoints", &checkpoints, "--resume", "-o", "execution.checkpointing.interval=50ms"];
    let whole = file("whole.json");
    assert!(flights(&[&run[..], &[&whole]].concat()).status.success());

    let mut killed = Command::new(env!("CARGO_BIN_EXE_flights"))
        .args([&run[..], &[&file("killed.json")], &keeps].concat())
        .env_remove("SLACKWATER_CONF_FILE")
        .spawn()
        .expect("the program starts");
    let jobs = Path::new(&checkpoints).join("flights");
    while slackwater::newest_checkpoint(&jobs).is_none() {
        assert!(killed.try_wait().expect("a child").is_none(), "it has ended too early");
        std::thread::yield_now();
    }
    killed.kill().expect("a child");
    killed.wait().expect("a child");

    let resumed = file("resumed.json");
    let output = flights(&[&run[..], &[&resumed], &keeps].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (whole, resumed) = (read_json(whole.as_ref()), read_json(resumed.as_ref()));
    assert_eq!(whole["results"], resumed["results"]);
}
