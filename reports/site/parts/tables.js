// Long tables, by Tabulator; cells are made from text, never from HTML.
const asText = (text, isNumber) => (cell) => make("span", { class: isNumber ? "number" : "text" }, text(cell.getValue(), cell.getData()));

function sparkline(points) {
  const canvas = make("canvas", { class: "spark", width: 120, height: 40, role: "img", "aria-label": "the signature's curve" });
  if (!points) return canvas;
  const context = canvas.getContext("2d");
  context.fillStyle = color("accent");
  const width = canvas.width / points.length;
  for (let place = 0; place < points.length; place++) {
    const height = (parseInt(points[place], 36) / 35) * (canvas.height - 2);
    context.fillRect(place * width, canvas.height - 1 - height, Math.max(1, width), height + 1);
  }
  return canvas;
}

function longTable(into, rows, columns, initialSort) {
  const shown = columnsWithRoom(columns, into.clientWidth || innerWidth);
  const made = new Tabulator(into, {
    data: rows,
    height: Math.min(innerHeight * 0.8, 70 + 33 * Math.max(rows.length, 3)),
    layout: "fitColumns",
    rowHeight: 32,
    placeholder: rows.length ? "Nothing matches." : "No data.",
    initialSort,
    columns: shown.map((column) => ({
      title: column.title,
      field: column.field,
      hozAlign: column.isNumber ? "right" : "left",
      headerHozAlign: column.isNumber ? "right" : "left",
      sorter: column.isNumber ? "number" : "string",
      sorterParams: { alignEmptyValues: "bottom" },
      headerSortStartingDir: column.isNumber ? "desc" : "asc",
      headerSort: column.field !== "spark",
      minWidth: leastWidth(column),
      widthGrow: column.isFirst && column.isFiltered ? 4 : 1,
      formatter: column.draw || asText(column.text || ((value) => nameText(value, 80)), column.isNumber),
      headerFilter: column.isFiltered ? "input" : undefined,
      headerFilterPlaceholder: "filter",
      headerFilterParams: { elementAttributes: { "aria-label": `Filter by ${column.title}` } },
    })),
  });
  const lacking = columns.filter((column) => !shown.includes(column)).map((column) => column.title);
  if (lacking.length) into.after(make("p", { class: "tip" }, `A wider window has more columns: ${lacking.join(", ")}.`));
  return made;
}

const SCROLLBAR = 17;
const leastWidth = (column) => column.width || (column.isNumber ? 84 : 100);

// The essential columns of a table, and the first others for which space remains.
function columnsWithRoom(columns, width) {
  let room = width - SCROLLBAR - columns.filter((column) => column.isFirst).reduce((sum, column) => sum + leastWidth(column), 0);
  return columns.filter((column) => {
    if (column.isFirst) return true;
    room -= leastWidth(column);
    return room >= 0;
  });
}
