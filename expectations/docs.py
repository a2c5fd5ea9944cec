"""The local Data Docs: Great Expectations' own account of a run's checks, as pages that need no network.

Great Expectations renders each table's page; the frame around it, the style and the index are ours, since
its own load styles and scripts from the net. Pages hold no script at all and forbid themselves to load
anything, so that nothing a log contains can run.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from expectations import gate

if TYPE_CHECKING:
    from jinja2 import Environment

#: the JSON of a suite validation result, as `gate.Checked` has it
Validation = Mapping[str, Any]

_PAGES = Path(__file__).parent / "pages"

#: What would be markup in a page stands in for itself while Great Expectations renders: it escapes some
#: texts and not others, and substitutes what follows a $.
_MARKUP = {"&": "amp", "<": "lt", ">": "gt", '"': "quot", "'": "#39", "$": "#36"}
_STAND_INS = {character: chr(0xE000 + place) for place, character in enumerate(_MARKUP)}
_DISARM = str.maketrans(dict.fromkeys(_STAND_INS.values(), "\N{REPLACEMENT CHARACTER}") | _STAND_INS)
_ENTITIES = str.maketrans({_STAND_INS[character]: f"&{entity};" for character, entity in _MARKUP.items()})


def build(validations: Iterable[Validation], into: Path) -> Path:
    """Write the Data Docs of a run's validations into a folder, and return its index page.

    The folder is made beside its place and moved there whole; what stood there before goes.
    """
    tables = list(validations)
    fresh, stale = into.with_name(f".{into.name}.new"), into.with_name(f".{into.name}.old")
    for folder in (fresh, stale):
        shutil.rmtree(folder, ignore_errors=True)
    fresh.mkdir(parents=True)
    render = _renderer()
    for validation in tables:
        (fresh / f"{validation['suite_name']}.html").write_text(render(validation), encoding="utf-8")
    (fresh / "index.html").write_text(_index(tables), encoding="utf-8")
    if into.exists():
        into.rename(stale)
    fresh.rename(into)
    shutil.rmtree(stale, ignore_errors=True)
    return into / "index.html"


# ---- a table's page


def _renderer() -> Callable[[Validation], str]:
    """Return what makes a table's page of its validation."""
    gate.preload()
    from great_expectations.core.expectation_validation_result import ExpectationSuiteValidationResultSchema
    from great_expectations.render.renderer.page_renderer import ValidationResultsPageRenderer
    from great_expectations.render.view.view import DefaultJinjaPageView

    schema, renderer = ExpectationSuiteValidationResultSchema(), ValidationResultsPageRenderer()
    view: Any = DefaultJinjaPageView()
    _frame(view.env)

    def render(validation: Validation) -> str:
        document = renderer.render(schema.load(_described(validation)))
        # The overview's header and batch tell nothing of ours; its statistics do.
        document.sections[0].content_blocks = document.sections[0].content_blocks[1:2]
        return str(view.render(document)).translate(_ENTITIES)

    return render


def _frame(environment: Environment) -> None:
    """Put our page around Great Expectations' content."""
    from jinja2 import ChoiceLoader, FileSystemLoader

    environment.loader = ChoiceLoader([FileSystemLoader(_PAGES), *([environment.loader] if environment.loader else [])])


def _described(validation: Validation) -> dict[str, Any]:
    """Return the validation with each rule in our words, and with no markup in what the data say."""
    results = [
        result
        | {
            "expectation_config": result["expectation_config"] | {"description": _description(result)},
            "result": _disarmed(_readable(result["result"])),
            "exception_info": _disarmed(result["exception_info"]),
        }
        for result in validation["results"]
    ]
    return dict(validation) | {"results": results, "meta": {}}


def _description(result: dict[str, Any]) -> str:
    config = result["expectation_config"]
    return f"{config['meta']['doc']} ({config['meta']['name']}, {config['severity']})".translate(_DISARM)


def _readable(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result as Great Expectations can show it.

    It runs the values of a pair together, shows a list as Python's code for it, and none of none as NaN %.
    """
    readable = dict(result)
    for name, value in result.items():
        if name == "observed_value":
            readable[name] = _listed(value)
        elif name == "partial_unexpected_counts":
            readable[name] = [count | {"value": _listed(count["value"])} for count in value]
        elif value is None and name.startswith("unexpected_percent"):
            readable[name] = 0.0
    return readable


def _listed(value: Any) -> Any:
    return ", ".join(map(str, value)) if isinstance(value, list) else value


def _disarmed(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _disarmed(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_disarmed(item) for item in value]
    return value.translate(_DISARM) if isinstance(value, str) else value


# ---- the index


def _index(validations: Sequence[Validation]) -> str:
    from jinja2 import Environment, FileSystemLoader

    environment = Environment(loader=FileSystemLoader(_PAGES), autoescape=True)
    failures = [failure for validation in validations for failure in _failures(validation)]
    overview = [_overview(validation) for validation in validations]
    return environment.get_template("index.j2").render(overview=overview, failures=failures)


def _overview(validation: Validation) -> dict[str, Any]:
    severities = [failure["severity"] for failure in _failures(validation)]
    return {
        "table_name": validation["suite_name"],
        "expectation_count": len(validation["results"]) + len(validation["meta"]["not_configured"]),
        "critical_count": severities.count("critical"),
        "warning_count": severities.count("warning"),
        "info_count": severities.count("info"),
        "quarantined_count": validation["meta"]["quarantined_count"],
    }


def _failures(validation: Validation) -> list[dict[str, Any]]:
    failed = [
        (result["expectation_config"], result["result"].get("unexpected_count", 0), "")
        for result in validation["results"]
        if not result["success"]
    ]
    failed += [(config, 0, ", ".join(config["not_configured"])) for config in validation["meta"]["not_configured"]]
    return [
        config["meta"]
        | {
            "table_name": validation["suite_name"],
            "severity": config["severity"],
            "unexpected_count": count,
            "not_configured": not_configured,
        }
        for config, count, not_configured in failed
    ]
