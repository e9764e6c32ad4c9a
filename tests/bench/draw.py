"""Draws bars as SVG, with the standard library alone.

The picture brings its own background, light or dark as its reader's system prefers, so it is readable on any page.
"""
import html

WIDTH, LEFT, RIGHT = 760, 150, 30
BAR, GAP, GROUP = 26, 10, 34
STYLE = """
    text { font: 14px system-ui, -apple-system, "Segoe UI", Arial, sans-serif; fill: #1f2328; }
    .title { font-size: 16px; font-weight: 600; } .group { font-weight: 600; } .small, .in { font-size: 12px; }
    .back { fill: #ffffff; } .grid { stroke: #d1d9e0; }
    .p0 { fill: #0a66c2; } .p1 { fill: #f4c06a; } .p2 { fill: #eda93b; } .p3 { fill: #d98e14; } .p4 { fill: #b99f74; }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3; } .in { fill: #1f2328; }
      .back { fill: #0d1117; } .grid { stroke: #3d444d; } .p0 { fill: #58a6ff; }
    }"""


def ticks(most):
    """0 and about five round steps that reach `most`."""
    step = next(unit * 10**power for power in range(-3, 7) for unit in (1, 2, 5) if most / (unit * 10**power) <= 6)
    return [i * step for i in range(int(-(-most // step)) + 1)]


def bars(title, axis, groups, note):
    """An SVG. groups: [(heading, [(name, [(part, value, colour)])])]. A bar is the sum of its parts; colours are 0 to
    4."""
    totals = [sum(value for _, value, _ in parts) for _, rows in groups for _, parts in rows]
    marks = ticks(max(totals) * 1.08)
    scale = (WIDTH - LEFT - RIGHT) / marks[-1]
    out, grid, y = [], [], 50

    def text(x, at, words, kind="", anchor="start"):
        place = f'x="{x:.1f}" y="{at:.1f}" class="{kind}" text-anchor="{anchor}"'
        out.append(f"  <text {place}>{html.escape(words)}</text>")

    text(20, 30, title, "title")
    for heading, rows in groups:
        y += GROUP
        text(20, y - 10, heading, "group")
        top = y
        for name, parts in rows:
            x = LEFT
            text(LEFT - 10, y + BAR - 8, name, anchor="end")
            for part, value, colour in parts:
                width = value * scale
                out.append(f'  <rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{BAR}" class="p{colour}"/>')
                if part:
                    text(x + width / 2, y + BAR - 8, f"{part} {value:g}", "in", "middle")
                x += width
            text(x + 6, y + BAR - 8, f"{sum(value for _, value, _ in parts):.2f} s")
            y += BAR + GAP
        for x in (LEFT + mark * scale for mark in marks):
            grid.append(f'  <line x1="{x:.1f}" y1="{top - 4}" x2="{x:.1f}" y2="{y - 4}" class="grid"/>')
    for mark in marks:
        text(LEFT + mark * scale, y + 18, f"{mark:g}", "small", "middle")
    text(LEFT + (WIDTH - LEFT - RIGHT) / 2, y + 38, axis, anchor="middle")
    text(20, y + 62, note, "small")
    height = y + 76
    size = f'width="{WIDTH}" height="{height}"'
    head = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" {size} role="img">',
            f"  <title>{html.escape(title)}</title>", f"  <style>{STYLE}\n  </style>", f'  <rect {size} class="back"/>']
    return "\n".join([*head, *grid, *out, "</svg>", ""])
