//! Measures verdicts of our matcher and of its peers in one run: `cargo bench -p tower-robots
//! --no-default-features --bench matcher`. Prints the table of `benches/README.md` at the end.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    unreachable_pub,
    reason = "a bench reports by printing"
)]

mod columns;
mod peers;
mod table;

use std::hint::black_box;
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion};
use tower_robots::rules::{Fallback, ProductToken, Reading, RequestPath, RobotsTxt};

use self::columns::Column;
use self::peers::Matcher;
use self::table::{median, row, time};

const MATCHERS: [&str; 5] = ["tower-robots", "robotxt", "texting_robots", "robotstxt", "floor"];

fn matcher<'c>(name: &str, column: &'c Column) -> Option<Matcher<'c>> {
    match name {
        "tower-robots" => Some(peers::ours(column)),
        "robotxt" => Some(peers::robotxt(column)),
        "texting_robots" => peers::texting_robots(column),
        // The time of this crate is exponential in the number of wildcards, so it does not finish
        // on these files.
        "robotstxt" if column.paths.len() == 1 => None,
        "robotstxt" => Some(peers::robotstxt(column)),
        _ => Some(peers::floor(column)),
    }
}

/// Measures our matcher alone, with a path that is already prepared. The result is comparable with
/// the floor.
fn verdict_only(group: &mut BenchmarkGroup<'_, WallTime>, column: &Column) {
    let rules = peers::compile(column);
    let tokens = [ProductToken::new(column.agent)];
    let paths: Vec<RequestPath<'_>> = column.paths.iter().map(|path| RequestPath::new(path.as_bytes())).collect();
    let mut paths = paths.iter().cycle();
    group.bench_function("verdict only", |bench| {
        bench.iter(|| paths.next().map(|path| rules.select(&tokens, Fallback::Star).verdict(black_box(path)).access()));
    });
}

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .sample_size(20)
        .configure_from_args();
    let columns: Vec<Column> = columns::seeded().into_iter().chain(columns::real()).collect();
    for column in &columns {
        let mut group = criterion.benchmark_group(&column.name);
        for name in MATCHERS {
            let Some(decide) = matcher(name, column) else { continue };
            let mut paths = column.paths.iter().cycle();
            group.bench_function(name, |bench| bench.iter(|| paths.next().map(|path| decide(black_box(path)))));
        }
        verdict_only(&mut group, column);
        let robots = RobotsTxt::parse(column.robots.as_bytes());
        group.bench_function("parse", |bench| bench.iter(|| RobotsTxt::parse(black_box(column.robots.as_bytes()))));
        let reading = if column.robots.len() > 512_000 { Reading::Reference } else { Reading::Standard };
        group.bench_function("compile", |bench| bench.iter(|| black_box(&robots).compile(reading)));
        group.finish();
    }
    criterion.final_summary();
    print(&columns);
}

fn print(columns: &[Column]) {
    let head = [
        "column",
        "tower-robots",
        "robotxt",
        "texting_robots",
        "robotstxt",
        "floor",
        "× floor",
        "verdict only",
        "× floor",
        "× faster than the best peer",
        "parse",
        "compile",
        "file",
        "memory × file",
    ];
    row(&head.map(str::to_owned));
    row(&head.map(|_| "---".to_owned()));
    for column in columns {
        let of = |name: &str| median(&column.name, name);
        let shown = |name: &str| of(name).map_or_else(|| "–".to_owned(), time);
        let ratio = |one: Option<f64>, other: Option<f64>| match (one, other) {
            (Some(one), Some(other)) => format!("{:.1}", one / other),
            _ => "–".to_owned(),
        };
        let ours = of("tower-robots");
        let best = ["robotxt", "texting_robots", "robotstxt"].into_iter().filter_map(of).min_by(f64::total_cmp);
        let mut cells = vec![column.name.clone()];
        cells.extend(MATCHERS.map(shown));
        cells.extend([ratio(ours, of("floor")), shown("verdict only"), ratio(of("verdict only"), of("floor"))]);
        cells.extend([ratio(best, ours), shown("parse"), shown("compile")]);
        let rules = peers::compile(column);
        cells.push(format!("{} KB", column.robots.len() / 1000));
        cells.push(format!("{:.1}", rules.memory() as f64 / column.robots.len() as f64));
        row(&cells);
    }
}
