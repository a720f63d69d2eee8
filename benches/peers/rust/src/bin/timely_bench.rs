//! timely dataflow on the jobs of its peers, two workers: J1 (v=dd: differential dataflow), J2, J3, J6, J7.

use differential_dataflow::operators::CountTotal;
use differential_dataflow::AsCollection;
use hashbrown::HashMap;
use peers::*;
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::rc::Rc;
use std::time::Instant;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::generic::Operator;
use timely::dataflow::operators::vec::Map;
use timely::dataflow::operators::{Concat, Input, Inspect, ToStream};
use timely::worker::Worker;

#[derive(Clone, Serialize, Deserialize)]
struct Rec([[u8; 25]; 4]);

/// Runs the dataflow on two workers; each returns its check total.
fn run<F>(build: F) -> u64
where
    F: Fn(&mut Worker, u64, Rc<Cell<u64>>) + Send + Sync + 'static,
{
    timely::execute(timely::Config::process(2), move |w| {
        let sum = Rc::new(Cell::new(0u64));
        build(w, w.index() as u64, sum.clone());
        while w.has_dataflows() {
            w.step_or_park(None);
        }
        sum.get()
    })
    .unwrap()
    .join()
    .into_iter()
    .fold(0, |a, r| a.wrapping_add(r.unwrap()))
}

fn part(n: u64, me: u64) -> std::ops::Range<u64> {
    n * me / 2..n * (me + 1) / 2
}

fn lines(file: &str, me: u64) -> impl Iterator<Item = String> {
    let len = std::fs::metadata(file).unwrap().len();
    let (from, to) = (len * me / 2, len * (me + 1) / 2);
    let mut f = BufReader::with_capacity(1 << 20, std::fs::File::open(file).unwrap());
    let mut pos = from.saturating_sub(1);
    f.seek(SeekFrom::Start(pos)).unwrap();
    if from > 0 {
        pos += f.read_until(b'\n', &mut vec![]).unwrap() as u64;
    }
    std::iter::from_fn(move || {
        let mut s = String::new();
        if pos >= to || f.read_line(&mut s).unwrap() == 0 {
            return None;
        }
        pos += s.len() as u64;
        s.truncate(s.len() - 1);
        Some(s)
    })
}

fn main() {
    let (job, o) = Opt::parse();
    let v = o.str("v", "");
    match job.as_str() {
        "J1" => {
            let (n, k) = (o.num("n", 20_000_000), o.num("k", 1_000_000));
            let t0 = Instant::now();
            if v == "dd" {
                let sum = run(move |w, me, sum| {
                    w.dataflow::<u64, _, _>(|scope| {
                        part(n, me)
                            .to_stream(scope)
                            .container::<Vec<_>>()
                            .map(move |i| { let q = key(i, k); (q, 0u64, val(q) as isize) })
                            .as_collection()
                            .count_total()
                            .inspect(move |((q, s), _, _)| sum.set(sum.get().wrapping_add(check(*q, *s as u64))));
                    });
                });
                out("differential-final", "J1", n, k, t0, sum, "");
                return;
            }
            let sum = run(move |w, me, sum| {
                w.dataflow::<u64, _, _>(|scope| {
                    part(n, me)
                        .to_stream(scope)
                        .container::<Vec<_>>()
                        .map(move |i| { let q = key(i, k); (q, val(q)) })
                        .unary(Exchange::new(|r: &(u64, u64)| r.0), "sum", |_, _| {
                            let mut m: HashMap<u64, u64> = HashMap::new();
                            move |input, output| {
                                input.for_each_stamp(|cap, data| {
                                    let mut out = output.session(&cap);
                                    for (q, v) in data.flat_map(|d| d.drain(..)) {
                                        let s = m.entry(q).or_insert(0);
                                        *s += v;
                                        out.give((q, *s));
                                    }
                                })
                            }
                        })
                        .container::<Vec<(u64, u64)>>()
                        .inspect(move |(q, s)| sum.set(sum.get().wrapping_add(check(*q, *s))));
                });
            });
            out("timely", "J1", n, k, t0, sum, "");
        }
        "J2" => {
            let (n, k) = (o.num("n", 10_000_000), o.num("k", 1_000_000));
            let t0 = Instant::now();
            let sum = run(move |w, me, sum| {
                w.dataflow::<u64, _, _>(|scope| {
                    let input = |base: u64| {
                        part(n, me)
                            .to_stream(scope)
                            .container::<Vec<_>>()
                            .map(move |i| (key(i + base, k), base != 0, val16(mix(i + base))))
                    };
                    input(0)
                        .concat(input(1 << 40))
                        .unary_frontier(Exchange::new(|r: &(u64, bool, u64)| r.0), "cogroup", |cap, _| {
                            let mut m: HashMap<u64, (Vec<u64>, Vec<u64>)> = HashMap::new();
                            let mut cap = Some(cap);
                            move |(input, frontier), output| {
                                input.for_each_stamp(|_, data| {
                                    for (q, right, v) in data.flat_map(|d| d.drain(..)) {
                                        let e = m.entry(q).or_default();
                                        if right { e.1.push(v) } else { e.0.push(v) }
                                    }
                                });
                                if frontier.is_empty() {
                                    if let Some(c) = cap.take() {
                                        let mut out = output.session(&c);
                                        for (q, (a, b)) in m.drain() {
                                            out.give((q, cogroup(a.len() as u64, a.iter().sum(), b.len() as u64, b.iter().sum())));
                                        }
                                    }
                                }
                            }
                        })
                        .container::<Vec<(u64, u64)>>()
                        .inspect(move |(q, s)| sum.set(sum.get().wrapping_add(check(*q, *s))));
                });
            });
            out("timely", "J2", 2 * n, k, t0, sum, "");
        }
        "J3" => {
            let (file, words) = (o.str("file", "words.txt"), o.num("words", 1));
            let t0 = Instant::now();
            let sum = run(move |w, me, sum| {
                w.dataflow::<u64, _, _>(|scope| {
                    lines(&file, me)
                        .to_stream(scope)
                        .container::<Vec<_>>()
                        .flat_map(|l: String| l.split_ascii_whitespace().map(str::to_owned).collect::<Vec<_>>())
                        .unary(Exchange::new(|w: &String| fnv(w.as_bytes())), "count", |_, _| {
                            let mut m: HashMap<String, u64> = HashMap::new();
                            move |input, output| {
                                input.for_each_stamp(|cap, data| {
                                    let mut out = output.session(&cap);
                                    for w in data.flat_map(|d| d.drain(..)) {
                                        let c = m.entry_ref(w.as_str()).or_insert(0);
                                        *c += 1;
                                        out.give((w, *c));
                                    }
                                })
                            }
                        })
                        .container::<Vec<(String, u64)>>()
                        .inspect(move |(w, c)| sum.set(sum.get().wrapping_add(fnv(w.as_bytes()).wrapping_mul(*c))));
                });
            });
            out("timely-running", "J3", words, 131071, t0, sum, "");
        }
        "J6" => {
            let n = o.num("n", 20_000_000);
            let t0 = Instant::now();
            let sum = run(move |w, me, sum| {
                w.dataflow::<u64, _, _>(|scope| {
                    part(n, me)
                        .to_stream(scope)
                        .container::<Vec<_>>()
                        .map(|i| {
                            let mut r = Rec([[i as u8; 25]; 4]);
                            r.0[0][..8].copy_from_slice(&mix(i).to_le_bytes());
                            r
                        })
                        .sink(Exchange::new(|r: &Rec| r.0[0][0] as u64), "sink", move |(input, _)| {
                            input.for_each_stamp(|_, data| {
                                for r in data.flat_map(|d| d.drain(..)) {
                                    let x = u64::from_le_bytes(r.0[0][..8].try_into().unwrap());
                                    sum.set(sum.get().wrapping_add(x ^ r.0[3][24] as i8 as i64 as u64));
                                }
                            })
                        });
                });
            });
            let mbs = n as f64 * 100.0 / 1e6 / t0.elapsed().as_secs_f64();
            out("timely-exchange", "J6", n, n, t0, sum, &format!("\"mb_per_s\":{mbs:.0}"));
        }
        "J7" => {
            let (backlog, rate, secs) = (o.num("backlog", 10_000_000), o.num("rate", 50_000), o.num("secs", 30));
            let k = o.num("k", 1_000_000);
            let t0 = Instant::now();
            let r = timely::execute(timely::Config::process(2), move |w| {
                let me = w.index() as u64;
                let sum = Rc::new(Cell::new(0u64));
                let lat = Rc::new(std::cell::RefCell::new(Vec::<u64>::new()));
                let (sum1, lat1) = (sum.clone(), lat.clone());
                let mut input = timely::dataflow::InputHandle::<u64, _>::new();
                w.dataflow::<u64, _, _>(|scope| {
                    scope
                        .input_from(&mut input)
                        .container::<Vec<(u64, u64)>>()
                        .unary(Exchange::new(|r: &(u64, u64)| r.0), "sum", move |_, _| {
                            let mut m: HashMap<u64, u64> = HashMap::new();
                            move |input, output| {
                                input.for_each_stamp(|cap, data| {
                                    let mut out = output.session(&cap);
                                    for (q, t) in data.flat_map(|d| d.drain(..)) {
                                        let s = m.entry(q).or_insert(0);
                                        *s += val(q);
                                        out.give((q, *s, t));
                                    }
                                })
                            }
                        })
                        .container::<Vec<(u64, u64, u64)>>()
                        .inspect(move |(q, s, t)| {
                            sum1.set(sum1.get().wrapping_add(check(*q, *s)));
                            if *t > 1 {
                                lat1.borrow_mut().push(t0.elapsed().as_nanos() as u64 - t);
                            }
                        });
                });
                let mut i = me;
                while i < backlog {
                    input.send((key(i, k), 0));
                    i += 2;
                    if i / 2 % 4096 == 0 {
                        input.flush();
                        w.step();
                    }
                }
                let b = t0.elapsed().as_secs_f64();
                let (start, mut sent) = (t0.elapsed().as_nanos() as u64, 0u64);
                while sent < rate * secs / 2 {
                    let now = t0.elapsed().as_nanos() as u64;
                    while sent < rate * secs / 2 && start + due(sent, rate) <= now {
                        let at = start + due(sent, rate);
                        input.send((key(i, k), if sent < rate * 5 / 2 { 1 } else { at }));
                        i += 2;
                        sent += 1;
                    }
                    input.advance_to(now / 1_000_000);
                    w.step();
                }
                input.close();
                while w.has_dataflows() {
                    w.step_or_park(None);
                }
                (sum.get(), lat.take(), b)
            })
            .unwrap()
            .join();
            let (mut sum, mut l, mut b) = (0u64, vec![], 0f64);
            for r in r {
                let r = r.unwrap();
                sum = sum.wrapping_add(r.0);
                l.extend(r.1);
                b = b.max(r.2);
            }
            out("timely-busy", "J7", backlog + rate * secs, k, t0, sum, &format!("\"backlog_s\":{b:.3},{}", quantiles(l)));
        }
        _ => panic!("unknown job"),
    }
}
