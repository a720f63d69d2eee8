//! Draws the figures of docs/benchmarks from result lines: `plots RESULTS DIRECTORY`.
//!
//! | file | what | of group |
//! |---|---|---|
//! | keys.svg | records a second by number of keys: stream, mixed, batch, peers | j1, j1-stream |
//! | cache.svg | records a second by keys in the write-back cache, skewed keys | j1-cache |
//! | budget.svg | records a second by memory of each sorter | j1-budget |
//! | parallelism.svg | records a second by subtasks | j1-parallelism |
//! | memory.svg | resident memory through a backlog and its switch | j1-memory |
//! | latency.svg | median latency of each tenth of a second after the switch | j7 |
//!
//! A figure without results is left out, by name. Points are medians of the runs of one command.

#![forbid(unsafe_code)]

mod results;

use std::error::Error;
use std::path::{Path, PathBuf};

use plotters::prelude::*;

use results::{Line, Results};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const SIZE: (u32, u32) = (900, 520);

/// How an axis runs.
#[derive(Clone, Copy)]
enum Axis {
    Linear,
    Logarithmic,
}

fn main() -> Result<()> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(file), Some(directory)) = (arguments.next(), arguments.next()) else {
        return Err("usage: plots RESULTS DIRECTORY".into());
    };
    let results = Results::read(&file)?;
    std::fs::create_dir_all(&directory)?;
    let million = |line: &Line| Some(line.number("records_per_s")? / 1e6);
    let rate = "million records a second";
    let keys = results.curves(&["j1", "j1-stream"], |line| line.number("keys"), million);
    draw(&directory.join("keys.svg"), ("keys", Axis::Logarithmic), rate, &keys)?;
    let cache = results.curves(&["j1-cache"], |line| line.option("cache"), million);
    let about = "keys in the write-back cache";
    draw(&directory.join("cache.svg"), (about, Axis::Logarithmic), rate, &cache)?;
    let budget = results.curves(&["j1-budget"], |line| line.option("sortmem"), million);
    let about = "memory of each sorter, MiB";
    draw(&directory.join("budget.svg"), (about, Axis::Logarithmic), rate, &budget)?;
    let parallel = results.curves(&["j1-parallelism"], |line| line.option("p"), million);
    draw(&directory.join("parallelism.svg"), ("subtasks", Axis::Linear), rate, &parallel)?;
    let memory = results.series("j1-memory", "memory_mb");
    let (about, seconds) = ("resident memory, MB", ("seconds", Axis::Linear));
    draw(&directory.join("memory.svg"), seconds, about, &memory)?;
    let latency = results.series("j7", "latency_ms");
    let (about, after) = ("median latency, ms", ("seconds after the switch", Axis::Linear));
    draw(&directory.join("latency.svg"), after, about, &latency)
}

/// A name and its points, by x.
pub(crate) type Curve = (String, Vec<(f64, f64)>);

fn draw(file: &Path, (x_name, axis): (&str, Axis), y_name: &str, curves: &[Curve]) -> Result<()> {
    let points = || curves.iter().flat_map(|(_, points)| points);
    let Some(right) = points().map(|point| point.0).reduce(f64::max) else {
        println!("{}: no results", file.display());
        return Ok(());
    };
    let left = points().map(|point| point.0).fold(right, f64::min);
    let top = points().map(|point| point.1).fold(0.0, f64::max) * 1.1;
    let root = SVGBackend::new(file, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let mut builder = ChartBuilder::on(&root);
    builder.margin(16).x_label_area_size(44).y_label_area_size(60);
    match axis {
        Axis::Linear => {
            let mut chart = builder.build_cartesian_2d(left.min(0.0)..right, 0.0..top)?;
            chart.configure_mesh().x_desc(x_name).y_desc(y_name).draw()?;
            for (curve, color) in curves.iter().zip(0..) {
                plot(&mut chart, curve, color)?;
            }
            legend(&mut chart)?;
        }
        Axis::Logarithmic => {
            let along = (left * 0.8..right * 1.25).log_scale();
            let mut chart = builder.build_cartesian_2d(along, 0.0..top)?;
            chart.configure_mesh().x_desc(x_name).y_desc(y_name).draw()?;
            for (curve, color) in curves.iter().zip(0..) {
                plot(&mut chart, curve, color)?;
            }
            legend(&mut chart)?;
        }
    }
    root.present()?;
    println!("{}", file.display());
    Ok(())
}

type Chart<'a, X> =
    ChartContext<'a, SVGBackend<'a>, Cartesian2d<X, plotters::coord::types::RangedCoordf64>>;

fn plot<'a, X>(chart: &mut Chart<'a, X>, curve: &Curve, color: usize) -> Result<()>
where
    X: plotters::coord::ranged1d::Ranged<ValueType = f64>,
{
    let style = ShapeStyle::from(Palette99::pick(color)).stroke_width(2);
    let (name, points) = curve;
    let few = points.len() < 30;
    chart
        .draw_series(LineSeries::new(points.iter().copied(), style))?
        .label(name)
        .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
    if few {
        chart.draw_series(points.iter().map(|point| Circle::new(*point, 3, style.filled())))?;
    }
    Ok(())
}

fn legend<'a, X>(chart: &mut Chart<'a, X>) -> Result<()>
where
    X: plotters::coord::ranged1d::Ranged<ValueType = f64>,
{
    let mut labels = chart.configure_series_labels();
    labels.position(SeriesLabelPosition::UpperRight);
    labels.background_style(WHITE.mix(0.8)).border_style(BLACK.mix(0.3)).draw()?;
    Ok(())
}
