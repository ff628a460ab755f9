//! `asymq gateway` from flags to the end.

use super::args::{GatewayArgs, GatewayCommand, SetArgs, SettingsArgs};
use super::settings::Settings;
use crate::output;
use asymq_args::read_flags;
use asymq_core::catalog::Catalog;
use asymq_gateway::{Control, Gateway, GatewayError, Outputs, Show, Stop, request_change};
use std::sync::Arc;

/// Runs a gateway until SIGINT or SIGTERM, and shows it as the flags ask; or changes a running one.
///
/// # Errors
/// A flag or the file is wrong, an interface is not fit, or a privilege is missing; a running gateway
/// is not there, or refuses.
pub(crate) fn run(args: &GatewayArgs, catalog: &'static impl Catalog) -> anyhow::Result<()> {
    if let Some(GatewayCommand::Set(args)) = &args.command {
        return set(args);
    }
    let typed = &args.settings;
    let settings: SettingsArgs = match &args.config {
        None => typed.clone(),
        Some(file) => typed.clone().or(read_flags(file)?),
    };
    let gateway = Gateway::open_with(catalog, &settings.config(catalog)?)?;
    let system = |action| move |source| GatewayError::System { action, source };
    let stop = Stop::new().map_err(system("making a pipe"))?;
    stop.on_signals().map_err(system("handling signals"))?;

    let shared = Arc::new(Settings::new(typed.clone(), settings.clone()));
    let mut control = Control::default();
    if let Some(path) = &settings.control {
        let shared = Arc::clone(&shared);
        let read = move |text: &str| shared.request(text, catalog);
        control.listen(path, Box::new(read))?;
    }
    if let Some(file) = args.config.clone() {
        let shared = Arc::clone(&shared);
        control.on_hangup(Box::new(move || shared.read_again(&file, catalog)))?;
    }
    control.on_accepted(move |_| shared.accepted());
    let outputs = Outputs {
        control,
        metrics: settings.metrics,
        show: match (settings.watch, settings.json) {
            (Some(true), _) => Show::Table,
            (_, Some(true)) => Show::Json,
            _ => Show::Nothing,
        },
    };
    Ok(outputs.run(gateway, &stop)?)
}

/// Asks the running gateway, and prints what it answers.
fn set(args: &SetArgs) -> anyhow::Result<()> {
    let settings = serde_json::to_value(&args.link)?;
    let lines = settings.as_object().into_iter().flatten();
    // A JSON value is one of TOML.
    let request: String = lines
        .filter(|(_, value)| !value.is_null() && **value != serde_json::json!([]))
        .map(|(key, value)| format!("{key} = {value}\n"))
        .collect();
    let done = request_change(&args.control, &request)?;
    output::print(&(done + "\n"))
}
