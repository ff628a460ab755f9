//! `asymq router install --kernel`: a systemd service that adds the qdisc sch_asymq each time the interface appears.

use super::args::{keywords, merged};
use super::install::Target;
use super::router_args::{InstallRouter, RouterSettings, read};
use super::router_install::{FILES, MARK, QDISC_SCRIPT, QDISC_SERVICE, QDISC_UNIT, UNIT};
use anyhow::bail;
use asymq_args::{Flags, Words};
use asymq_core::catalog::Catalog;
use asymq_gateway::{GatewayError, check_interface_name};
use std::fmt::Write as _;

/// Settings common to tc and the router.
const KNOWN: [&str; 8] = [
    "wan", "qdisc", "up", "down", "overhead", "mpu", "atm", "ptm",
];

/// Writes the script and the service, and starts the service.
pub(super) fn install(args: &InstallRouter, catalog: &dyn Catalog) -> anyhow::Result<()> {
    let planned = &args.service.planned;
    // Checks the settings, so that errors are reported.
    let wan = planned.settings(read, catalog)?.0.host.config(catalog)?.wan;
    check_interface_name(&wan).map_err(|source| GatewayError::Port {
        flag: "--wan",
        source,
    })?;
    let flags = Flags::<RouterSettings>::new(catalog);
    let words = merged(&flags, &planned.given.words, planned.config.as_deref())?;
    if let Some(other) = words.keys().find(|key| !KNOWN.contains(key)) {
        bail!(
            "--{other}: not available with --kernel; leave it out, and add the option of tc to {QDISC_SCRIPT} afterwards"
        );
    }
    let target = Target::new(FILES, args.service.root.as_deref(), args.service.dry_run)?;
    if target.has(UNIT) {
        bail!("{UNIT}: asymq runs here as a program; run 'asymq router uninstall' first");
    }
    let unit = include_str!("files/asymq-router-qdisc.service");
    let files = [
        (QDISC_SCRIPT, script(&wan, &words)),
        (QDISC_UNIT, unit.replace("@DEVICE@", &device_unit(&wan))),
    ];
    // The program is not copied, because this service does not run it.
    target.write_all(&files, &target.place(true)?)?;
    target.run(&["systemctl", "daemon-reload"])?;
    target.run(&["systemctl", "enable", QDISC_SERVICE])?;
    target.run(&["systemctl", "restart", QDISC_SERVICE])?;
    target.finish()
}

/// Commands of tc for `start` and `stop`. The checked name, numbers and keywords need no quotes.
fn script(wan: &str, words: &Words) -> String {
    let mut link = String::new();
    for word in words.all("overhead") {
        let _ = write!(link, " {}", keywords(word));
    }
    if let Some(mpu) = words.get("mpu") {
        let _ = write!(link, " mpu {mpu}");
    }
    for code in ["atm", "ptm"] {
        if words.get(code) == Some("true") {
            let _ = write!(link, " {code}");
        }
    }
    let up = words.get("up").unwrap_or("auto");
    let qdisc = words
        .get("qdisc")
        .map_or(String::new(), |name| format!(" {name}"));
    let root = format!("tc qdisc replace dev \"$wan\" root asymq{qdisc} up {up}{link} nat");
    let (ifb, down, undo) = match words.get("down") {
        None => ("", String::new(), ""),
        Some(down) => (
            "ifb=ifb-asymq\n",
            format!(
                "ip link add \"$ifb\" type ifb 2>/dev/null || true\n    ip link set \"$ifb\" up\n    \
                 tc qdisc replace dev \"$wan\" handle ffff: ingress\n    \
                 tc filter replace dev \"$wan\" parent ffff: protocol all pref 1 handle 1 matchall \
                 action mirred egress redirect dev \"$ifb\"\n    \
                 tc qdisc replace dev \"$ifb\" root asymq cake up {down}{link} nat isolation dual-dsthost\n    "
            ),
            "    tc qdisc del dev \"$wan\" ingress || true\n    ip link del \"$ifb\" || true\n",
        ),
    };
    format!(
        "{MARK} --kernel; {QDISC_SERVICE}.service runs it.\nset -e\nwan='{}'\n{ifb}case $1 in\n\
         start)\n    {down}{root}\n    ;;\n\
         stop)\n    tc qdisc del dev \"$wan\" root || true\n{undo}    ;;\nesac\n",
        wan.replace('\'', r"'\''")
    )
}

/// Name of the interface's unit, as `systemd-escape` prints it.
fn device_unit(name: &str) -> String {
    let mut unit = "sys-subsystem-net-devices-".to_owned();
    for byte in name.bytes() {
        match byte {
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b':' | b'_' | b'.' => unit.push(byte.into()),
            _ => drop(write!(unit, "\\x{byte:02x}")),
        }
    }
    unit + ".device"
}

#[cfg(test)]
mod tests {
    use super::*;
    use asymq_core::catalog::Standard;
    use std::process::Command;

    fn written(line: &str) -> String {
        let flags = Flags::<RouterSettings>::new(&Standard);
        let words = flags.given(line.split(' ').map(str::to_owned)).unwrap();
        script("ppp0", &words)
    }

    /// Commands that a shell executes for `verb`.
    fn run(script: &str, verb: &str) -> Vec<String> {
        let shown = "tc() { echo tc \"$@\"; }; ip() { echo ip \"$@\"; }\n".to_owned() + script;
        let output = Command::new("sh")
            .args(["-c", &shown, "sh", verb])
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn the_script_sets_the_root_qdisc_and_with_a_downlink_one_at_an_ifb() {
        let up = written("--wan ppp0 --up 19mbit --qdisc sad --overhead pppoe-ptm ether-vlan");
        let root = "tc qdisc replace dev ppp0 root asymq sad up 19mbit pppoe-ptm ether-vlan nat";
        assert_eq!(run(&up, "start"), [root]);
        assert_eq!(run(&up, "stop"), ["tc qdisc del dev ppp0 root"]);
        let both = written("--wan ppp0 --down 95mbit --overhead 44 --atm --mpu 64");
        assert_eq!(
            run(&both, "start"),
            [
                "ip link add ifb-asymq type ifb",
                "ip link set ifb-asymq up",
                "tc qdisc replace dev ppp0 handle ffff: ingress",
                "tc filter replace dev ppp0 parent ffff: protocol all pref 1 handle 1 matchall \
                 action mirred egress redirect dev ifb-asymq",
                "tc qdisc replace dev ifb-asymq root asymq cake up 95mbit overhead 44 mpu 64 atm \
                 nat isolation dual-dsthost",
                "tc qdisc replace dev ppp0 root asymq up auto overhead 44 mpu 64 atm nat",
            ]
        );
        assert_eq!(
            run(&both, "stop"),
            [
                "tc qdisc del dev ppp0 root",
                "tc qdisc del dev ppp0 ingress",
                "ip link del ifb-asymq"
            ]
        );
    }

    #[test]
    fn units_of_devices_are_escaped() {
        assert_eq!(
            device_unit("eth0.7"),
            "sys-subsystem-net-devices-eth0.7.device"
        );
        assert_eq!(
            device_unit("pppoe-wan"),
            r"sys-subsystem-net-devices-pppoe\x2dwan.device"
        );
    }
}
