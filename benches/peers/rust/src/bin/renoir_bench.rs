//! Renoir on the jobs of its peers, two hosts in one process: J1 (v=final), J2, J3 (v=preagg), J4, J6, J7.

use peers::*;
use renoir::operator::cache::{BincodeCacheConfig, BincodeCacher, VecCacher};
use renoir::prelude::*;
use renoir::BatchMode;
use serde::{Deserialize, Serialize};
use std::time::Instant;

fn ctx() -> StreamContext {
    StreamContext::new(RuntimeConfig::local(2).unwrap())
}

fn add(a: &mut u64, x: u64) {
    *a = a.wrapping_add(x);
}

fn total(v: Option<Vec<u64>>) -> u64 {
    v.unwrap().into_iter().fold(0, u64::wrapping_add)
}

#[derive(Clone, Serialize, Deserialize)]
struct Rec([[u8; 25]; 4]);

fn main() {
    let (job, o) = Opt::parse();
    let v = o.str("v", "");
    let bm = BatchMode::fixed(o.num("batch", 1024) as usize);
    match job.as_str() {
        "J1" => {
            let (n, k) = (o.num("n", 20_000_000), o.num("k", 1_000_000));
            let t0 = Instant::now();
            let c = ctx();
            let s = c.stream_par_iter(0..n).batch_mode(bm).map(move |i| {
                let q = key(i, k);
                (q, val(q))
            });
            let (peer, r) = if v == "final" {
                let s = s.group_by_fold(|r| r.0, 0u64, |a, r| *a += r.1, |a, b| *a += b);
                ("renoir-final-preagg", s.unkey().map(|(q, s)| check(q, s)).fold_assoc(0, add, add).collect_vec())
            } else {
                let mut s0 = 0u64;
                let s = s.group_by(|r| r.0).rich_map(move |(_, r): (&u64, (u64, u64))| {
                    s0 += r.1;
                    s0
                });
                ("renoir", s.unkey().map(|(q, s)| check(q, s)).fold_assoc(0, add, add).collect_vec())
            };
            c.execute_blocking();
            out(peer, "J1", n, k, t0, total(r.get()), "");
        }
        "J2" => {
            let (n, k) = (o.num("n", 10_000_000), o.num("k", 1_000_000));
            let t0 = Instant::now();
            let c = ctx();
            let input = |base: u64| {
                c.stream_par_iter(0..n)
                    .batch_mode(bm)
                    .map(move |i| (key(i + base, k), base != 0, val16(mix(i + base))))
            };
            let r = input(0)
                .merge(input(1 << 40))
                .group_by(|r| r.0)
                .fold((Vec::<u64>::new(), Vec::<u64>::new()), |a, r| if r.1 { a.1.push(r.2) } else { a.0.push(r.2) })
                .unkey()
                .map(|(q, (a, b))| {
                    check(q, cogroup(a.len() as u64, a.iter().sum(), b.len() as u64, b.iter().sum()))
                })
                .fold_assoc(0, add, add)
                .collect_vec();
            c.execute_blocking();
            out("renoir-fold", "J2", 2 * n, k, t0, total(r.get()), "");
        }
        "J3" => {
            let (file, words) = (o.str("file", "words.txt"), o.num("words", 1));
            let t0 = Instant::now();
            let c = ctx();
            let s = c
                .stream_file(file)
                .batch_mode(bm)
                .flat_map(|l: String| l.split_ascii_whitespace().map(str::to_owned).collect::<Vec<_>>());
            let (peer, r) = if v == "preagg" {
                let s = s.group_by_count(|w| w.clone()).unkey();
                ("renoir-preagg", s.map(|(w, c)| fnv(w.as_bytes()).wrapping_mul(c as u64)).fold_assoc(0, add, add).collect_vec())
            } else {
                let s = s.group_by(|w| w.clone()).fold(0u64, |c, _| *c += 1).unkey();
                ("renoir", s.map(|(w, c)| fnv(w.as_bytes()).wrapping_mul(c)).fold_assoc(0, add, add).collect_vec())
            };
            c.execute_blocking();
            out(peer, "J3", words, 131071, t0, total(r.get()), "");
        }
        "J4" => {
            let (n, rounds, jobs) = (o.num("n", 5_000_000), o.num("rounds", 300), o.num("jobs", 5));
            let t0 = Instant::now();
            let (mut sum, mut each, mut t) = (0u64, vec![], Instant::now());
            macro_rules! job {
                ($s:expr, $c:expr, $j:expr) => {{
                    let j: u64 = $j;
                    let r = $s
                        .batch_mode(bm)
                        .map(move |x: u64| (((x >> 32) * 1000) >> 32, val16(x) * (j + 1)))
                        .group_by(|r| r.0)
                        .fold(0u64, |a, r| *a += r.1)
                        .unkey()
                        .map(|(q, s)| check(q, s))
                        .fold_assoc(0, add, add)
                        .collect_vec();
                    $c.execute_blocking();
                    sum = sum.wrapping_add(total(r.get()));
                    each.push(format!("{:.3}", t.elapsed().as_secs_f64()));
                    t = Instant::now();
                }};
            }
            macro_rules! costly {
                ($c:expr) => {
                    $c.stream_par_iter(0..n)
                        .batch_mode(bm)
                        .map(move |i: u64| (0..rounds).fold(i, |x, _| mix(x)))
                };
            }
            macro_rules! cached {
                ($cache:expr) => {{
                    let cache = $cache;
                    for j in 1..jobs {
                        let c = StreamContext::new(cache.config());
                        job!(cache.clone().stream_in(&c), c, j);
                    }
                }};
            }
            match v.as_str() {
                "vec" => {
                    let c = ctx();
                    let (cache, s) = costly!(c).cache::<VecCacher<u64>>(());
                    job!(s, c, 0);
                    cached!(cache);
                }
                "file" => {
                    let c = ctx();
                    let cfg = BincodeCacheConfig { batch_size: 1024, path: o.str("tmp", ".").into() };
                    let (cache, s) = costly!(c).cache::<BincodeCacher<u64>>(cfg);
                    job!(s, c, 0);
                    cached!(cache);
                }
                _ => {
                    for j in 0..jobs {
                        let c = ctx();
                        job!(costly!(c), c, j);
                    }
                }
            }
            let peer = format!("renoir-cache-{}", if v.is_empty() { "none" } else { &v });
            out(&peer, "J4", n, 1000, t0, sum, &format!("\"jobs_s\":[{}]", each.join(",")));
        }
        "J6" => {
            let n = o.num("n", 20_000_000);
            let t0 = Instant::now();
            let c = ctx();
            let s = c.stream_par_iter(0..n).batch_mode(bm).map(|i: u64| {
                let mut r = Rec([[i as u8; 25]; 4]);
                r.0[0][..8].copy_from_slice(&mix(i).to_le_bytes());
                r
            });
            let word = |r: &Rec| u64::from_le_bytes(r.0[0][..8].try_into().unwrap());
            let chk = move |r: Rec| word(&r) ^ r.0[3][24] as i8 as i64 as u64;
            let r = if v == "keyby" {
                s.repartition_by(Replication::Unlimited, move |r: &Rec| word(r)).map(chk).fold_assoc(0, add, add).collect_vec()
            } else {
                s.shuffle().map(chk).fold_assoc(0, add, add).collect_vec()
            };
            c.execute_blocking();
            let mbs = n as f64 * 100.0 / 1e6 / t0.elapsed().as_secs_f64();
            let peer = format!("renoir-{}", if v == "keyby" { "keyby" } else { "shuffle" });
            out(&peer, "J6", n, n, t0, total(r.get()), &format!("\"mb_per_s\":{mbs:.0}"));
        }
        "J7" => {
            let (backlog, rate, secs) = (o.num("backlog", 10_000_000), o.num("rate", 50_000), o.num("secs", 30));
            let k = o.num("k", 1_000_000);
            let t0 = Instant::now();
            let c = ctx();
            let src = move |me: u64, all: u64| {
                let (mut i, mut sent, mut start) = (me, 0u64, None);
                std::iter::from_fn(move || {
                    i += all;
                    if i - all < backlog {
                        return Some((i - all, 0));
                    }
                    let s = *start.get_or_insert_with(|| t0.elapsed().as_nanos() as u64);
                    if sent == rate * secs / all {
                        return None;
                    }
                    let at = s + due(sent, rate);
                    while (t0.elapsed().as_nanos() as u64) < at {
                        std::thread::sleep(std::time::Duration::from_micros(200));
                    }
                    sent += 1;
                    Some((i - all, if sent < rate * 5 / all { 1 } else { at }))
                })
            };
            let mut s0 = 0u64;
            let wait = std::time::Duration::from_micros(o.num("wait_us", 1000));
            let r = c
                .stream_par_iter(src)
                .batch_mode(BatchMode::timed(1024, wait))
                .map(move |(i, t): (u64, u64)| (key(i, k), t))
                .group_by(|r| r.0)
                .rich_map(move |(q, r): (&u64, (u64, u64))| {
                    s0 += val(*q);
                    (s0, r.1)
                })
                .unkey()
                .map(move |(q, (s, t))| (check(q, s), if t > 1 { t0.elapsed().as_nanos() as u64 - t } else { 0 }))
                .fold_assoc(
                    (0u64, Vec::<u64>::new()),
                    |a, (c, l)| {
                        a.0 = a.0.wrapping_add(c);
                        if l > 0 {
                            a.1.push(l);
                        }
                    },
                    |a, b| {
                        a.0 = a.0.wrapping_add(b.0);
                        a.1.extend(b.1);
                    },
                )
                .collect_vec();
            c.execute_blocking();
            let (sum, l) = r.get().unwrap().pop().unwrap();
            let s = t0.elapsed().as_secs_f64() - secs as f64;
            out(&format!("renoir-wait{}us", wait.as_micros()), "J7", backlog + rate * secs, k, t0, sum,
                &format!("\"backlog_s\":{s:.3},{}", quantiles(l)));
        }
        _ => panic!("unknown job"),
    }
}
