"""What forensics has found, if the console was told where its tables are."""

from kohort.console.page import NotFound, Page, Visit
from kohort.pipeline.forensics.found import Found, NoFindings


def findings(visit: Visit) -> Page:
    if visit.desk.findings is None:
        raise NotFound("this console was not told of any tables of forensics (--forensics DIR)")
    found: tuple[Found, ...] = ()
    trouble = ""
    try:
        found = visit.desk.findings.read()
    except NoFindings as error:
        trouble = str(error)
    return Page(
        template="findings.html",
        title="Findings",
        told={"directory": visit.desk.findings.directory, "findings": found, "trouble": trouble},
        shown={"groups": len({each.group_id for each in found})},
        pace_s=10.0,
    )
