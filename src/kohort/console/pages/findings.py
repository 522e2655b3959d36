"""The findings of forensics, if the console was started with --forensics."""

from kohort.console.findings import FindingsUnavailable, StoredFinding
from kohort.console.page import NotFound, Page, PageRequest


def findings(request: PageRequest) -> Page:
    if request.context.findings is None:
        raise NotFound("this console has no forensics tables: start it with --forensics DIR")
    found: tuple[StoredFinding, ...] = ()
    error = ""
    try:
        found = request.context.findings.read()
    except FindingsUnavailable as failure:
        error = str(failure)
    return Page(
        template="findings.html",
        title="Findings",
        data={
            "directory": request.context.findings.directory,
            "findings": found,
            "error": error,
        },
        template_data={"groups": len({each.group_id for each in found})},
        refresh_s=10.0,
    )
