//! An experiment that runs in a second.

pub(crate) const SMALL: &str = r#"
title = "Fig. 0: a small sweep"

[scenario]
flows-up = 1
flows-down = 1
rtt = "40ms"
duration = "3s"
warmup = "1s"
runs = 3

[[sweep]]
key = "up"
values = ["1mbit", "2mbit"]

[[series]]
id = "droptail"
set.qdisc = "droptail"
paper.down = { "1mbit" = 0.26 }

[[series]]
id = "aq"
set.qdisc = "aq"

[[measure]]
id = "down"
title = "download"
of = "down.utilization"

[[chart]]
measures = ["down"]

[[chart]]
over = "time"
panels = [{ title = "download", of = "down.data" }]

[[claim]]
id = "bounds"
says = "A link carries no more than it can."
holds = ["aq:down < 10 within 0.01", "droptail:down@2mbit < 10"]

[[claim]]
id = "impossible"
says = "A link carries twice what it can."
holds = ["aq:down = 20 within 0.1"]
because = "It has { aq:down@1mbit } at most."
shown-by = ["aq:down < 10.1"]

[[claim]]
id = "untrue"
says = "A link carries three times what it can."
holds = ["aq:down = 30 within 0.1"]
because = "It carries less than nothing."
shown-by = ["aq:down < 0"]
"#;
