"""How results are marked in every report."""


def verdict(passed: bool) -> str:
    """PASS or FAIL, in colour."""
    return "[green]PASS[/]" if passed else "[red]FAIL[/]"
