"""Scenarios match the command line: the same names, errors and bytes."""

from __future__ import annotations

import json
import pickle
import random
import re
from typing import Any

import asymq
import pytest

#: Number of random scenarios to compare.
GENERATED = 50


def made_up(number: int) -> dict[str, Any]:
    """Random keys of a scenario; reproducible by their number."""
    chance = random.Random(number)
    up = chance.choice(["256kbit", "512kbit", "1mbit", "3mbit"])
    keys: dict[str, Any] = {"up": up, "down": chance.choice(["4mbit", "10mbit", "1mbit"])}
    names = [name for name, _, group, _ in asymq.disciplines() if group != "python"]
    keys["qdisc"] = chance.choice(names)
    optional: dict[str, Any] = {
        "flows_up": chance.randint(0, 3),
        "flows_down": chance.randint(1, 4),
        "rtt": chance.choice(["100ms", "20ms..80ms"]),
        "buffer": chance.choice(["20p", "64kb", "100p"]),
        "buffer_down": chance.choice(["50p", "30kb"]),
        "qdisc_down": chance.choice(["droptail", "codel", "red"]),
        "tcp": chance.choice(["reno", "newreno", "cubic", "dctcp", "bbr3"]),
        "mss": chance.choice(["536b", "1460b"]),
        "delayed_ack": "40ms",
        "sack": chance.choice([True, False]),
        "timestamps": True,
        "probe": "100ms",
        "udp": ["up:64kbit", "down:200kbit@2s..4s"],
        "flow": [{"direction": "down", "rtt": "30ms", "size": "100kb"}],
        "netem_up": "loss 0.5%",
        "steps_down": ["2s:2mbit"],
    }
    for key in chance.sample(sorted(optional), chance.randint(0, 7)):
        keys[key] = optional[key]
    return {**keys, "duration": "6s", "warmup": "1s", "runs": 2, "seed": chance.randint(0, 2**40)}


def words(keys: dict[str, Any]) -> list[str]:
    """Converts the keys to words of the command line."""
    line = []
    for key, value in keys.items():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, dict):
                item = ",".join(f"{name}={text}" for name, text in item.items())
            text = str(item).lower() if isinstance(item, bool) else str(item)
            line.append(f"--{key.replace('_', '-')}={text}")
    return line


def test_generated_scenarios_give_the_bytes_of_the_command_line(command: Any) -> None:
    for number in range(GENERATED):
        keys = made_up(number)
        expected = command("sim", "--json", *words(keys))
        try:
            result = asymq.simulate(asymq.Scenario(**keys))
        except asymq.ScenarioError as error:
            assert expected.returncode == 2, keys
            assert expected.stderr == f"{error}\n"
            continue
        assert expected.returncode == 0, expected.stderr
        assert result.to_json() == expected.stdout, keys


def test_time_series_are_those_of_the_command_line(command: Any) -> None:
    keys = made_up(1) | {"qdisc": "aq"}
    result = asymq.simulate(asymq.Scenario(**keys), series=True)
    assert result.to_json() == command("sim", "--json", "--series", *words(keys)).stdout


@pytest.mark.parametrize(
    "keys",
    [
        {"up": "1mbitt"},
        {"upp": "1mbit"},
        {"rtt": 0.1},
        {"up": "2Mbps"},
        {"flows_up": -1},
        {"flows_up": "many"},
        {"mss": "20b"},
        {"tcp": "bbr"},
        {"ack_queue": "qa"},
        {"sack": "maybe"},
        {"warmup": "70s"},
        {"udp": "up:1000gbit:28b"},
        {"data_share": 2},
        {"qdisc": "sad", "data_share": 2},
    ],
)
def test_errors_are_those_of_the_command_line(command: Any, keys: dict[str, Any]) -> None:
    said = command("sim", *words(keys))
    with pytest.raises(asymq.ScenarioError) as error:
        asymq.Scenario(**keys)
    # Removes the congestion controls of other tests, which the command does not have.
    told = re.sub(r", bbr3, .*", " or bbr3", str(error.value))
    assert (said.returncode, said.stderr) == (2, f"{told}\n")


def test_errors_of_a_file_name_its_line(command: Any, tmp_path: Any) -> None:
    file = tmp_path / "link.toml"
    file.write_text('up = "1mbit"\nbuffer = "50x"\n')
    said = command("sim", str(file))
    with pytest.raises(asymq.ScenarioError) as error:
        asymq.Scenario(file)
    assert said.stderr == f"{error.value}\n"
    assert f"{file}:2: " in said.stderr
    with pytest.raises(asymq.ScenarioError, match="--qdisc 3: unknown; --help lists all"):
        asymq.Scenario(qdisc=3)
    with pytest.raises(asymq.ScenarioError, match="cannot be read"):
        asymq.Scenario(tmp_path / "none.toml")


def test_a_scenario_is_what_toml_json_and_pickle_make_of_it() -> None:
    for number in range(20):
        try:
            scenario = asymq.Scenario(**made_up(number))
        except asymq.ScenarioError:
            continue
        for same in (
            asymq.Scenario.from_toml(scenario.to_toml()),
            asymq.Scenario.from_json(scenario.to_json()),
            pickle.loads(pickle.dumps(scenario)),
        ):
            assert same == scenario
            assert hash(same) == hash(scenario)
            assert same.replace(seed=3) == scenario.replace(seed=3)
            assert same.replace(seed=3) != scenario


def test_a_file_gives_way_to_keywords_and_to_replace(tmp_path: Any) -> None:
    file = tmp_path / "link.toml"
    file.write_text('up = "2mbit"\nruns = 3\n[[flow]]\ndirection = "down"\nrtt = "20ms"\n')
    scenario = asymq.Scenario(file, runs=7)
    assert (scenario["up"], scenario.seeds) == ("2mbit", range(1, 8))
    assert scenario == asymq.Scenario(up="2mbit", runs=7, flow={"direction": "down", "rtt": "20ms"})
    file.unlink()
    assert scenario.replace(up="1mbit")["flow"] == ["down,rtt=20ms"]


def test_a_scenario_of_a_result_runs_again_but_for_its_seeds() -> None:
    scenario = asymq.Scenario(flows_up=1, flows_down=1, duration="6s", runs=1)
    result = asymq.simulate(scenario)
    again = asymq.Scenario.from_json(result.to_json())
    assert again == scenario
    assert asymq.simulate(again, seeds=[1]).to_json() == result.to_json()
    with pytest.raises(asymq.ScenarioError):
        again.replace(up="2mbit")
    with pytest.raises(asymq.ScenarioError, match=r"to_json\(\) has all of it"):
        again.to_toml()


def test_keys_of_a_scenario_are_attributes() -> None:
    scenario = asymq.Scenario(up="2mbit", flows_up=3)
    assert (scenario.up, scenario.flows_up) == ("2mbit", 3)
    assert "flows_up" in dir(scenario)
    with pytest.raises(AttributeError, match="flows_upp"):
        scenario.flows_upp
    assert "2mbit" in scenario._repr_html_()


def test_nothing_of_a_scenario_can_be_changed() -> None:
    scenario = asymq.Scenario()
    with pytest.raises(AttributeError):
        scenario.up = "1mbit"  # type: ignore[attr-defined]
    assert repr(asymq.Scenario(up="1mbit", udp=["up:1kbit", "down:1kbit"])) == (
        'asymq.Scenario(up="1mbit", udp=["up:1kbit", "down:1kbit"])'
    )


def test_the_model_and_the_comparison_are_the_commands(command: Any) -> None:
    columns = asymq.model(up="950kbit", data_per_ack=2)
    said = json.loads(command("model", "--json", "--up=950kbit", "--data-per-ack=2").stdout)
    assert columns["up_bit_per_s"] == 950e3
    assert columns["least_up_bit_per_s"] == said["least_up"]
    assert columns["rates_down_data_bit_per_s"] == said["full"]["rates"]["down"]["data"]
    assert columns["delay_data_s"] == pytest.approx(said["full"]["delay_ms"]["data"] / 1e3)
    assert columns["droptail_delay_s"] == pytest.approx(said["droptail_delay_ms"] / 1e3)
    # SAD, sec. 2 and Table 1: 200 ACKs/s, 1.6 Mbit/s, K = 5.
    amp = asymq.model(up="64kbit", down="8mbit", data_size="1000b")
    assert (amp["amp_a"], amp["amp_throughput_bit_per_s"], amp["amp_k"]) == (200, 1.6e6, 5)
    assert amp["amp_down_packets"] == pytest.approx(200)
    assert asymq.model(buffer="64kb")["buffer_bytes"] == 65536
    with pytest.raises(asymq.ScenarioError) as error:
        asymq.model(data_per_ack=0)
    assert command("model", "--data-per-ack=0").stderr == f"{error.value}\n"
    short = {"duration": "6s", "runs": 2}
    comparison = asymq.compare(asymq.Scenario.headline(**short), only=["sad", "aq"])
    said = command("compare", "--json", "--only=sad,aq", *words(short))
    reports = '  "reports": {'
    assert comparison.to_json().split(reports)[1] == said.stdout.split(reports)[1]
    assert list(comparison) == ["sad", "aq"]


def test_a_rate_may_be_learnt_before_a_modem(command: Any) -> None:
    keys: dict[str, Any] = {
        "up": "auto:1mbit..50mbit",
        "down": "auto",
        "modem_up": "5mbit,buffer=300ms",
        "modem_down": "20mbit,buffer=300ms",
        "timestamps": True,
        "tcp": "cubic",
        "probe": "20ms",
        "duration": "12s",
        "flows_up": 2,
        "flows_down": 2,
    }
    learnt = asymq.simulate(asymq.Scenario(**keys))
    assert learnt.to_json() == command("sim", "--json", *words(keys)).stdout
    fixed = asymq.simulate(asymq.Scenario(**keys).replace(up="50mbit"))

    def call(result: asymq.Result) -> float:
        return float(json.loads(result.to_json())["mean"]["up"]["probe_ms"]["p99"])

    assert call(learnt) < 100 < 200 < call(fixed)
    with pytest.raises(asymq.ScenarioError, match="add --modem-up"):
        asymq.Scenario(up="auto")


def test_tables_that_contain_themselves_are_refused() -> None:
    table: dict[str, Any] = {}
    table["a"] = table
    with pytest.raises(ValueError, match="a table inside of a table"):
        asymq.Scenario(flow=[table])
    parameters: dict[str, Any] = {}
    parameters["parameters"] = parameters
    with pytest.raises(ValueError, match="contains `parameters`"):
        asymq.Scenario(parameters=parameters)


def test_numbers_of_numpy_are_numbers() -> None:
    numpy = pytest.importorskip("numpy")
    ours = asymq.Scenario(flows_up=3, sack=True, data_share=0.5, qdisc="wrr", udp=["up:1kbit", "down:1kbit"])
    theirs = asymq.Scenario(
        flows_up=numpy.int64(3),
        sack=numpy.bool_(True),
        data_share=numpy.float64(0.5),
        qdisc="wrr",
        udp=numpy.array(["up:1kbit", "down:1kbit"]),
    )
    assert theirs == ours
    assert asymq.Scenario(flow={"direction": "down", "ack-every": numpy.uint8(2)}) == asymq.Scenario(
        flow="down,ack-every=2"
    )
    short = asymq.Scenario(duration="3s", warmup="1s", flows_up=1, flows_down=0)
    assert asymq.simulate(short, seeds=numpy.arange(2)) == asymq.simulate(short, seeds=range(2))


def test_names_of_a_comparison_may_be_one_text() -> None:
    short = asymq.Scenario(duration="3s", warmup="1s", flows_up=1, flows_down=0, runs=1)
    assert list(asymq.compare(short, only="asymq")) == ["asymq"]
    assert list(asymq.compare(short, only="sad,aq")) == ["sad", "aq"]
    with pytest.raises(asymq.ScenarioError, match="^only asymqq: unknown; did you mean `asymq`"):
        asymq.compare(short, only=["asymqq"])
