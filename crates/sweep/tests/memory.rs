//! A sweep keeps less than a kilobyte of memory per finished run.

use asymq_args::Defaults;
use asymq_sim::STANDARD;
use asymq_sweep::experiment;
use asymq_sweep::folder::{self, Plan};
use asymq_sweep::report::Origin;
use std::alloc::{GlobalAlloc, Layout, System};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Allocated bytes now, and their maximum.
static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

struct Counting;

// SAFETY: every call goes to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Relaxed) + layout.size();
        MOST.fetch_max(now, Relaxed);
        // SAFETY: the caller obeys the same contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller obeys the same contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns the maximum memory of a sweep of this many runs and its report.
fn most_memory(runs: u32) -> usize {
    let text = format!(
        r#"
title = "many"
scenario = {{ flows-up = 1, flows-down = 2, duration = "1s", warmup = "100ms", runs = {runs} }}
series = [{{ id = "aq", set.qdisc = "aq" }}]
measure = [{{ id = "down", title = "down", of = "down.utilization" }}, {{ id = "up", title = "up", of = "settled.up.data" }}]
chart = [{{ over = "time", panels = [{{ title = "down", of = "down.data" }}] }}]
"#
    );
    let defaults = Defaults::paper();
    let read = experiment::read_text("own/many", Path::new("many.toml"), &text, &defaults);
    let plan = Plan::new(&[read.unwrap()], false, None);
    let out = tempfile::tempdir().unwrap();
    MOST.store(NOW.load(Relaxed), Relaxed);
    let before = NOW.load(Relaxed);
    let decided = plan.run(STANDARD, &defaults, out.path(), 2, &|_, _, _| {});
    folder::publish(out.path(), &decided.unwrap(), &Origin::of_this_build(false)).unwrap();
    let table = std::fs::read_to_string(out.path().join("runs.csv")).unwrap();
    assert_eq!(table.lines().count() as u32, runs + 1);
    MOST.load(Relaxed) - before
}

#[test]
fn a_finished_run_leaves_a_kilobyte_in_memory() {
    most_memory(2);
    let (few, many) = (most_memory(100), most_memory(400));
    let each = many.saturating_sub(few) / 300;
    assert!(each < 1024, "{each} bytes a run");
}
