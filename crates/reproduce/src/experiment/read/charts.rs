//! The charts of an experiment.

use super::file::{File, OverName};
use super::{Read, Reader};
use crate::experiment::{Chart, Experiment, Over, Panel, PanelOf};
use crate::expression::Expression;
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
            let mut panels = Vec::new();
            for id in &entry.measures {
                let known = experiment.measures.iter().map(|m| m.id.as_str());
                let measure = self.index("measure", id, known)?;
                panels.push(Panel {
                    title: experiment.measures[measure].title.clone(),
                    of: PanelOf::Measure(measure),
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
                panels.push(Panel {
                    title: panel.title.clone(),
                    of: PanelOf::Course(of),
                });
            }
            let find = |id: &Spanned<String>| {
                let known = experiment.series.iter().map(|s| s.id.as_str());
                self.index("series", id, known)
            };
            let series = match &entry.series[..] {
                [] => (0..experiment.series.len()).collect(),
                some => some.iter().map(find).collect::<Result<_, _>>()?,
            };
            experiment.charts.push(Chart {
                over,
                panels,
                series,
                y_label: entry.y_label.clone(),
                y_range: entry.y_range,
                log_x: entry.log_x,
            });
        }
        Ok(())
    }
}
