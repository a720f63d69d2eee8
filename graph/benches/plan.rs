//! Planning a program of 1,000 steps, against a plain topological walk over the same program.
//!
//! Shape: 200 branches from one source, each of a map, a keyed operator, a map, a two-input
//! operator that also reads the neighbour, and a sink. The walk visits each step and edge once and
//! allocates one list. `SLACKWATER_BENCH_SMOKE=1` plans 10 branches.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use element::NodeId;
use slackwater_graph::{
    Describe, InputEdge, OperatorAttributes, PlanSettings, Transformation, TransformationGraph,
    plan,
};

#[derive(Clone)]
struct Step(OperatorAttributes);

impl Describe for Step {
    fn attributes(&self) -> OperatorAttributes {
        self.0
    }
}

type Program = TransformationGraph<Step, ()>;

fn program(branches: usize) -> (Program, Vec<NodeId>) {
    let mut graph = Program::new();
    let mut add = |name: String, attributes, inputs: Vec<InputEdge<()>>| {
        let inputs = inputs.into_iter().map(|edge| vec![edge]).collect();
        graph.add(Transformation::new(name, inputs, Step(attributes)))
    };
    let source = add("source".to_owned(), OperatorAttributes::bounded_source(), vec![]);
    let (mut sinks, mut neighbour) = (Vec::new(), source);
    for branch in 0..branches {
        let operator = OperatorAttributes::operator();
        let map = add(format!("map {branch}"), operator, vec![InputEdge::forward(source, ())]);
        let sum = vec![InputEdge::keyed(map, ())];
        let sum = add(format!("sum {branch}"), OperatorAttributes::keyed(), sum);
        let tidy = add(format!("tidy {branch}"), operator, vec![InputEdge::forward(sum, ())]);
        let join = vec![InputEdge::keyed(tidy, ()), InputEdge::keyed(neighbour, ())];
        let join = add(format!("join {branch}"), OperatorAttributes::keyed(), join);
        let print = vec![InputEdge::forward(join, ())];
        sinks.push(add(format!("print {branch}"), OperatorAttributes::sink(), print));
        neighbour = tidy;
    }
    (graph, sinks)
}

/// The steps that the sinks need, producers first.
fn walk(graph: &Program, sinks: &[NodeId]) -> Vec<NodeId> {
    let mut seen = vec![false; graph.len()];
    let mut stack: Vec<(NodeId, bool)> = sinks.iter().map(|sink| (*sink, false)).collect();
    let mut order = Vec::with_capacity(graph.len());
    while let Some((id, done)) = stack.pop() {
        if done {
            order.push(id);
        } else if !std::mem::replace(&mut seen[id.0 as usize], true) {
            stack.push((id, true));
            let step = graph.node(id).expect("ids come from the graph");
            stack.extend(step.inputs.iter().flatten().map(|edge| (edge.from, false)));
        }
    }
    order
}

fn plans(criterion: &mut Criterion) {
    let smoke = std::env::var_os("SLACKWATER_BENCH_SMOKE").is_some();
    let (graph, sinks) = program(if smoke { 10 } else { 200 });
    let mut group = criterion.benchmark_group("plan");
    group.throughput(Throughput::Elements(graph.len() as u64));
    if smoke {
        group.sample_size(10).measurement_time(std::time::Duration::from_millis(100));
    }
    let steps = graph.len();
    group.bench_function(BenchmarkId::new("topological walk", steps), |bencher| {
        bencher.iter(|| black_box(walk(&graph, &sinks)));
    });
    let batch = PlanSettings::default();
    group.bench_function(BenchmarkId::new("plan, batch", steps), |bencher| {
        bencher.iter(|| black_box(plan(&graph, &sinks, &batch).expect("the program is right")));
    });
    let job = plan(&graph, &sinks, &batch).expect("the program is right");
    group.bench_function(BenchmarkId::new("explain", steps), |bencher| {
        bencher.iter(|| black_box(job.explain()));
    });
    group.finish();
}

criterion_group!(benches, plans);
criterion_main!(benches);
