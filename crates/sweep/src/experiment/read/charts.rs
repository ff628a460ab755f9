//! The charts of an experiment.

use super::file::{ChartEntry, File, PanelEntry, PerPanel};
use super::reader::{Read, Reader};
use crate::experiment::{Chart, Experiment, Panel, PanelOf};
use crate::store::Recording;
use std::collections::BTreeMap;
use toml::Spanned;

impl Reader<'_> {
    pub(super) fn charts(&self, file: &File, experiment: &Experiment) -> Read<Vec<Chart>> {
        let chart = |entry: &ChartEntry| {
            let of_measures = entry.measures.iter().map(|id| {
                let measure = self.look_up(id, |id| experiment.index_of_measure(id))?;
                Ok(Panel {
                    title: experiment.measures[measure].title.clone(),
                    of: PanelOf::Measure(measure),
                    y_label: experiment.measures[measure].unit.clone(),
                    y_range: None,
                    paper: BTreeMap::new(),
                })
            });
            let over_time = entry
                .panels
                .iter()
                .map(|panel| self.panel(panel, experiment));
            let mut panels = of_measures.chain(over_time).collect::<Read<Vec<_>>>()?;
            if let Some(labels) = &entry.y_label {
                self.each("y-label", labels, &mut panels, |panel, label| {
                    panel.y_label = label
                })?;
            }
            if let Some(ranges) = &entry.y_range {
                self.each("y-range", ranges, &mut panels, |panel, range| {
                    panel.y_range = Some(range);
                })?;
            }
            let series = entry.series.iter();
            let series = series.map(|id| self.look_up(id, |id| experiment.index_of_series(id)));
            Ok(Chart {
                over: entry.over,
                panels,
                series: match entry.series.is_empty() {
                    true => (0..experiment.series.len()).collect(),
                    false => series.collect::<Read<_>>()?,
                },
                log_x: entry.log_x,
            })
        };
        file.chart.iter().map(chart).collect()
    }

    /// Reads a panel over time.
    fn panel(&self, entry: &PanelEntry, experiment: &Experiment) -> Read<Panel> {
        let of = self.expression(&entry.of, "channel", &Recording::CHANNELS)?;
        let mut paper = BTreeMap::new();
        if let Some(id) = &entry.measure {
            let measure = self.look_up(id, |id| experiment.index_of_measure(id))?;
            let levels = experiment.series.iter().enumerate();
            paper.extend(levels.filter_map(|(index, series)| {
                let level = series.cells[0].paper[measure]?;
                Some((index, level))
            }));
        }
        for (id, published) in &entry.paper {
            let series = self.look_up(id, |id| experiment.index_of_series(id))?;
            paper.insert(series, *published);
        }
        Ok(Panel {
            title: entry.title.clone(),
            of: PanelOf::Recording(of),
            y_label: String::new(),
            y_range: None,
            paper,
        })
    }

    /// Returns a value per panel, from one value for all panels or from a list of values.
    fn each<T: Clone>(
        &self,
        key: &str,
        given: &Spanned<PerPanel<T>>,
        panels: &mut [Panel],
        set: impl Fn(&mut Panel, T),
    ) -> Read<()> {
        let count = panels.len();
        let values = match given.get_ref() {
            PerPanel::All(value) => vec![value.clone(); count],
            PerPanel::Each(values) if values.len() == count => values.clone(),
            PerPanel::Each(values) => {
                let message = format!(
                    "{key}: {} values for {}; write one value for all, or one for each",
                    values.len(),
                    asymq_scenario::count(count, "panel")
                );
                return Err(self.at(given.span().start, message));
            }
        };
        panels
            .iter_mut()
            .zip(values)
            .for_each(|(panel, value)| set(panel, value));
        Ok(())
    }
}
