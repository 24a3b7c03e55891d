"""A report in the forms of others: JUnit XML, which CI systems show, with a test case for each threshold; and plots.

Source of the format: https://github.com/testmoapp/junitxml
"""

from pathlib import Path
from xml.etree import ElementTree

from kumulus.extras.lab.report import text
from kumulus.extras.lab.report.files import os_errors_explained
from kumulus.extras.lab.report.model import Report, Test
from kumulus.host import files

FILE = "junit.xml"


def junit(report: Report) -> str:
    """The XML text."""
    suites = ElementTree.Element("testsuites", name=report.metadata.experiment)
    for test in report.results.tests:
        _suite(suites, report, test)
    if report.results.error:
        suite = ElementTree.SubElement(suites, "testsuite", name="run", tests="1", failures="0", errors="1")
        case = ElementTree.SubElement(suite, "testcase", name="comes to its end", classname=report.metadata.experiment)
        ElementTree.SubElement(case, "error", message=printable(report.results.error))
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def _suite(suites: ElementTree.Element, report: Report, test: Test) -> None:
    partial = test.status == "partial"
    # The same in every run: CI systems know a test by it.
    classname = f"{report.metadata.experiment}.{report.metadata.scheduler.name}.{test.id.rpartition('-')[2]}"
    failures = sum(not each.holds for each in test.thresholds)
    suite = ElementTree.SubElement(
        suites,
        "testsuite",
        name=test.test_name,
        timestamp=report.metadata.timestamp,
        time=f"{test.details.measures.get('duration', 0):.3f}",
        tests=str(len(test.thresholds) + 1),
        failures=str(failures),
        errors=str(int(partial)),
    )
    properties = ElementTree.SubElement(suite, "properties")
    for name in text.MEASURES:
        if name in test.details.measures:
            ElementTree.SubElement(properties, "property", name=name, value=f"{test.details.measures[name]:g}")
    for line in report.metadata.fidelity:
        ElementTree.SubElement(properties, "property", name="fidelity", value=printable(line))
    end = ElementTree.SubElement(suite, "testcase", name="comes to its end", classname=classname)
    if partial:
        ElementTree.SubElement(end, "error", message=printable(test.details.ended))
    for each in test.thresholds:
        case = ElementTree.SubElement(suite, "testcase", name=printable(each.expected), classname=classname)
        if not each.holds:
            ElementTree.SubElement(case, "failure", message=printable(f"found {each.found}"))


def printable(text: str) -> str:
    """A text without the characters that XML 1.0 does not allow."""
    return "".join(sign for sign in text if sign in "\t\n" or sign.isprintable())


def write_forms(report: Report, directory: Path) -> None:
    """Write JUnit XML and plots."""
    with os_errors_explained(directory / FILE):
        files.write(directory / FILE, junit(report))
    # Drawing needs a library that should not be loaded during a measurement.
    from kumulus.extras.lab.report import plots

    plots.write(report, directory)
