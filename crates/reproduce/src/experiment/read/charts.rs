//! The charts of an experiment.

use super::file::{ChartEntry, File, OverName, PaperCourse, PerPanel};
use super::{Read, Reader};
use crate::experiment::{Chart, Experiment, Over, Panel, PanelOf, Published};
use crate::expression::Expression;
use std::collections::BTreeMap;
use toml::Spanned;

impl Reader<'_> {
    pub(super) fn charts(&self, file: &File, experiment: &mut Experiment) -> Read<()> {
        for entry in &file.chart {
            let over = match entry.over {
                OverName::Sweep => Over::Sweep,
                OverName::Time => Over::Time,
                OverName::TimeBySeries => Over::TimeBySeries,
                OverName::Average => Over::Average,
            };
            let find = |id: &Spanned<String>| {
                let known = experiment.series.iter().map(|s| s.id.as_str());
                self.index("series", id, known)
            };
            let mut panels = Vec::new();
            for id in &entry.measures {
                let known = experiment.measures.iter().map(|m| m.id.as_str());
                let measure = self.index("measure", id, known)?;
                panels.push(Panel {
                    title: experiment.measures[measure].title.clone(),
                    of: PanelOf::Measure(measure),
                    y_label: experiment.measures[measure].unit.clone(),
                    y_range: None,
                    paper: BTreeMap::new(),
                });
            }
            for panel in &entry.panels {
                let offset = panel.of.span().start;
                let of = Expression::parse(panel.of.get_ref())
                    .map_err(|message| self.at(offset, message))?;
                let known = ["up", "down", "up.data", "down.data"];
                if let Some(name) = of.names().into_iter().find(|name| !known.contains(name)) {
                    let message = format!("unknown channel {name}; use {}", known.join(", "));
                    return Err(self.at(offset, message));
                }
                let mut paper = BTreeMap::new();
                if let Some(id) = &panel.measure {
                    let known = experiment.measures.iter().map(|m| m.id.as_str());
                    let measure = self.index("measure", id, known)?;
                    let values = experiment.series.iter().enumerate();
                    paper.extend(values.filter_map(|(index, series)| {
                        let level = series.paper.get(&(measure, 0))?;
                        Some((index, Published::Level(*level)))
                    }));
                }
                for (series, published) in &panel.paper {
                    let published = match published {
                        PaperCourse::Level(level) => Published::Level(*level),
                        PaperCourse::Moments(moments) => Published::Moments(moments.clone()),
                    };
                    paper.insert(find(series)?, published);
                }
                panels.push(Panel {
                    title: panel.title.clone(),
                    of: PanelOf::Course(of),
                    y_label: String::new(),
                    y_range: None,
                    paper,
                });
            }
            self.vertical_axes(entry, &mut panels)?;
            let series = match &entry.series[..] {
                [] => (0..experiment.series.len()).collect(),
                some => some.iter().map(find).collect::<Result<_, _>>()?,
            };
            experiment.charts.push(Chart {
                over,
                panels,
                series,
                log_x: entry.log_x,
            });
        }
        Ok(())
    }

    /// Labels and ranges of the vertical axes, for all panels or one for each.
    fn vertical_axes(&self, entry: &ChartEntry, panels: &mut [Panel]) -> Read<()> {
        let count = panels.len();
        if let Some(labels) = &entry.y_label {
            let labels = self.per_panel("y-label", labels, count)?;
            for (panel, label) in panels.iter_mut().zip(labels) {
                panel.y_label = label;
            }
        }
        if let Some(ranges) = &entry.y_range {
            let ranges = self.per_panel("y-range", ranges, count)?;
            for (panel, range) in panels.iter_mut().zip(ranges) {
                panel.y_range = Some(range);
            }
        }
        Ok(())
    }

    /// One value for each of `count` panels.
    fn per_panel<T: Clone>(
        &self,
        key: &str,
        given: &Spanned<PerPanel<T>>,
        count: usize,
    ) -> Read<Vec<T>> {
        match given.get_ref() {
            PerPanel::All(value) => Ok(vec![value.clone(); count]),
            PerPanel::Each(values) if values.len() == count => Ok(values.clone()),
            PerPanel::Each(values) => {
                let message = format!(
                    "{key}: {} given for {count} panels; write one for all, or one for each",
                    values.len()
                );
                Err(self.at(given.span().start, message))
            }
        }
    }
}
