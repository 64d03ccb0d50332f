//! Four published observations, from one model: the simulated machine with its default costs.
//!
//! `cargo run --release --features sim --example published` prints all of them; name one or more
//! of `resume`, `once`, `sharing`, `neighbours` for those alone.

mod figures;
mod fit;
mod model;
mod neighbours;
mod once;
#[path = "../s3_resume/progress.rs"]
mod progress;
mod resume;
mod sharing;
#[path = "../s3_resume/timeline.rs"]
mod timeline;

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

/// Shows what the model makes of published observations.
#[derive(Parser)]
struct Args {
    /// Which; all when none is named
    topics: Vec<Topic>,
    /// Only draw the resume of the MacBookPro9,1, as SVG, into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Topic {
    /// Resume after S3 on two MacBooks
    Resume,
    /// One decision per platform
    Once,
    /// Per-CPU data in shared lines
    Sharing,
    /// Write-combining and its neighbours
    Neighbours,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args = Args::parse();
    if let Some(file) = args.svg {
        return Ok(std::fs::write(file, resume::picture()?)?);
    }
    let all = Topic::value_variants();
    let topics = if args.topics.is_empty() {
        all
    } else {
        &args.topics
    };
    for (n, topic) in topics.iter().enumerate() {
        if n > 0 {
            println!("\n");
        }
        match topic {
            Topic::Resume => resume::report(),
            Topic::Once => once::report(),
            Topic::Sharing => sharing::report(),
            Topic::Neighbours => neighbours::report(),
        }
    }
    Ok(())
}
