// Pages of file systems and runs, by day.
const decoded = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
const rateOf = (code, told) => (code === 0 ? null : code === 1 ? 0 : told.least_bytes_per_s * 2 ** ((code - 2) / told.codes_per_octave));

const inferredText = (basis) => (basis === "inferred" ? " (inferred)" : "");

// Colors of a heat map: higher values have more contrast with the background of the theme.
function heatColors() {
  const isDark = document.documentElement.dataset.theme === "dark";
  const stops = isDark ? [[24, 30, 38], [38, 74, 120], [52, 140, 190], [120, 210, 190], [250, 240, 160]] : [[246, 248, 250], [186, 214, 235], [84, 150, 205], [20, 84, 156], [8, 32, 84]];
  return (share) => {
    const at = Math.max(0, Math.min(0.9999, share)) * (stops.length - 1), low = Math.floor(at), part = at - low;
    return stops[low].map((value, place) => Math.round(value + part * (stops[low + 1][place] - value)));
  };
}

function sumOfCodes(told, reads, writes, place) {
  const read = rateOf(reads[place], told), written = rateOf(writes[place], told);
  return read === null && written === null ? null : (read || 0) + (written || 0);
}

drawers.filesystem = async () => {
  const known = await loaded("filesystems");
  const draw = async () => {
    const [name, day] = location.hash.slice(1).split("/").map(decodeURIComponent);
    const found = known.find((one) => one[0] === name) || (name ? null : known[0]);
    byId("message").hidden = true;
    document.querySelectorAll("#choices").forEach((old) => old.remove());
    for (const figure of document.querySelectorAll("main figure")) figure.hidden = !found;
    if (!found) { say(known.length ? `This release has no polls of ${nameText(name)}.` : "This release has no polls, so the storage traffic is unknown."); return; }
    byId("title").replaceChildren("File system ", make("bdi", {}, nameText(found[0], 80)));
    byId("purpose").after(make("nav", { id: "choices", "aria-label": "File systems" }, ...known.map(([one]) => make("a", { href: `#${hashOf([one])}`, "aria-current": one === found[0] ? "true" : false }, nameText(one, 40)))));
    themeChanged.clear();
    const told = await loaded(`filesystem/${found[1]}`);
    const chosen = told.days.includes(day) ? day : told.days.at(-1);
    showCalendar(told, chosen);
    tellQuery("advice", { filesystem: found[0] });
    await showAdvice((row) => row.filesystem === found[0], "application", "iosig advise APPLICATION");
    await showDay(found, chosen);
  };
  addEventListener("hashchange", draw);
  await draw();
};

function showCalendar(told, chosen) {
  tellQuery("calendar", { filesystem: told.filesystem });
  const into = drawnIn("calendar");
  into.replaceChildren();
  const reads = decoded(told.read), writes = decoded(told.write);
  const rates = Array.from(reads, (_, place) => sumOfCodes(told, reads, writes, place));
  const moved = rates.filter((rate) => rate > 0).sort((a, b) => a - b);
  const low = moved[Math.floor(moved.length * 0.02)] || 1e6, high = Math.max(moved.at(-1) || 1e9, low * 2);
  const left = 84, top = 22, row = Math.max(8, Math.min(22, 620 / told.days.length)), height = top + row * told.days.length + 4;
  const { canvas } = drawnCanvas(into, () => height, (context, width) => {
    const colors = heatColors(), image = new ImageData(1440, told.days.length);
    rates.forEach((rate, place) => {
      const share = rate > 0 ? Math.log(rate / low) / Math.log(high / low) : 0;
      const hatch = (place % 1440 + Math.floor(place / 1440) * 2) % 8 < 3;
      const [red, green, blue] = rate === null ? (hatch ? [224, 168, 0] : [150, 150, 150]) : colors(rate > 0 ? 0.08 + 0.92 * share : 0);
      image.data.set([red, green, blue, rate === null ? (hatch ? 150 : 60) : 255], 4 * place);
    });
    const small = new OffscreenCanvas(1440, told.days.length);
    small.getContext("2d").putImageData(image, 0, 0);
    context.imageSmoothingEnabled = false;
    context.drawImage(small, left, top, width - left - 8, row * told.days.length);
    context.fillStyle = color("soft");
    context.textAlign = "center";
    for (let hour = 0; hour <= 24; hour += width < 600 ? 6 : 3) context.fillText(`${hour}:00`, Math.min(width - 20, left + (hour / 24) * (width - left - 8)), 14);
    context.textAlign = "right";
    context.textBaseline = "middle";
    const every = Math.ceil(13 / row);
    const own = told.days.indexOf(chosen);
    told.days.forEach((day, number) => { if (day === chosen || (number % every === 0 && Math.abs(number - own) >= every)) { context.fillStyle = color(day === chosen ? "ink" : "soft"); context.fillText(day, left - 6, top + row * (number + 0.5)); } });
    context.strokeStyle = color("strong");
    context.lineWidth = 2;
    context.strokeRect(left, top + row * told.days.indexOf(chosen), width - left - 8, row);
  }, "Heat map of minutes and days. Use the links below to select a day");
  canvas.tabIndex = 0;
  const tip = make("p", { class: "tip", "aria-live": "polite" }, `From ${rateText(low)} to ${rateText(high)}; hatched: not polled. Select a day with a click or the arrow keys.`);
  into.append(ramp(low, high), tip);
  const placeOf = (event) => {
    const box = canvas.getBoundingClientRect();
    return [Math.floor((event.clientY - box.top - top) / row), Math.floor(((event.clientX - box.left - left) / (box.width - left - 8)) * 1440)];
  };
  const go = (number) => { if (told.days[number]) location.hash = hashOf([told.filesystem, told.days[number]]); };
  canvas.addEventListener("click", (event) => go(placeOf(event)[0]));
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (step) { event.preventDefault(); go(told.days.indexOf(chosen) + step); }
  });
  canvas.addEventListener("mousemove", (event) => {
    const [number, minute] = placeOf(event);
    if (!told.days[number] || minute < 0 || minute >= 1440) return;
    const place = number * 1440 + minute, clock = `${String(Math.floor(minute / 60)).padStart(2, "0")}:${String(minute % 60).padStart(2, "0")}`;
    tip.textContent = rates[place] === null ? `${told.days[number]} ${clock}: not polled` : `${told.days[number]} ${clock}: ${rateText(rateOf(reads[place], told))} read, ${rateText(rateOf(writes[place], told))} written`;
  });
}

function ramp(low, high) {
  const line = make("div", { class: "ramp" });
  drawnCanvas(line, () => 12, (context, width) => {
    const colors = heatColors();
    for (let x = 0; x < width; x++) { context.fillStyle = `rgb(${colors(0.08 + (0.92 * x) / width)})`; context.fillRect(x, 0, 1, 12); }
  }, "scale of colors");
  line.append(make("p", { class: "ends" }, make("span", {}, rateText(low)), make("span", {}, rateText(high))));
  return line;
}

// Whether the largest source of interfering bytes during a slowed run or burst is a known application.
const isKnownOther = (row) => row.top_interferer_application_id !== null && (row.top_interferer_bytes || 0) >= (row.unattributed_bytes || 0);
const otherCells = (row) => (isKnownOther(row) ? [otherLink(row.top_interferer_application_id), volumeText(row.top_interferer_bytes)] : [otherLink(null), volumeText(row.unattributed_bytes)]);
const longerCells = (row) => [durationText(row.delay_s), durationRangeText(row.delay_low_s, row.delay_high_s)];

function showSlowedRuns(into, told) {
  const rows = rowsOf(told.slowed);
  into.append(make("p", {}, slowedText(rows.length, told.looked_count)));
  if (rows.length) into.append(plainTable(["application", "job", "longer", "range", "expected_correlation", "bursts slowed", "most there", "its bytes"], rows.slice(0, 30).map((row) => [
    otherLink(row.application_id), make("a", { href: runHref(row.cluster, row.job_id, row.started_at) }, nameText(row.job_id, 40)), ...longerCells(row), trustText(row.expected_correlation), `${row.slowed_burst_count} of ${row.burst_count}`, ...otherCells(row)])));
  if (rows.length > 30) into.append(make("p", {}, `And ${countText(rows.length - 30)} more.`));
}

async function showDay([name, place], day) {
  for (const figure of ["day", "there", "slowed"]) { tellQuery(figure, { filesystem: name, day }); drawnIn(figure).replaceChildren(); }
  byId("day").querySelector("h2").textContent = `${day}: traffic by application`;
  byId("there").querySelector("h2").textContent = `Jobs on ${day}`;
  byId("slowed").querySelector("h2").textContent = `Runs slowed on ${day}`;
  const told = await loaded(`filesystem/${place}-${day}`).catch(() => null);
  if (!told) { nothing(drawnIn("day"), "No polls on that day."); nothing(drawnIn("there"), "No data of that day."); nothing(drawnIn("slowed"), "No data of that day."); return; }
  const reads = decoded(told.read), writes = decoded(told.write);
  const measured = Array.from({ length: 288 }, (_, step) => {
    const minutes = Array.from({ length: 5 }, (_, minute) => sumOfCodes(told, reads, writes, 5 * step + minute)).filter(isKnown);
    return minutes.length ? minutes.reduce((sum, rate) => sum + rate, 0) / minutes.length : null;
  });
  drawDay(drawnIn("day"), measured, told.parts);
  showSlowedRuns(drawnIn("slowed"), told);
  const rows = rowsOf(told.runs);
  const into = make("div");
  drawnIn("there").append(into);
  longTable(into, rows, [
    { title: "job", field: "job_id", isFirst: true, isFiltered: true, draw: (cell) => { const run = cell.getData(); return make("a", { href: runHref(run.cluster, run.job_id, run.started_at) }, nameText(run.job_id, 40)); } },
    { title: "application", field: "application", isFirst: true, isFiltered: true, draw: (cell) => { const run = cell.getData(); return run.application_id ? make("a", { href: `application.html#${applicationHash(run.application_id)}` }, nameText(run.application, 60)) : make("span", {}, nameText(run.application, 60)); } },
    { title: "user", field: "user", isFiltered: true },
    { title: "nodes", field: "node_count", isNumber: true, text: countText },
    { title: "moved (estimate)", field: "estimated_bytes", isNumber: true, isFirst: true, text: volumeText, width: 130 },
    { title: "own bytes", field: "own_bytes", isNumber: true, text: volumeText },
    { title: "started (UTC)", field: "started_at", isNumber: true, text: instantText, width: 140 },
    { title: "ended", field: "ended_at", isNumber: true, text: instantText, width: 140 },
  ], [{ column: "estimated_bytes", dir: "desc" }]);
}

// Draws a day in five-minute steps: measured rates in gray, attributed rates stacked in colors.
function drawDay(into, measured, parts) {
  const left = 76, top = 8, bottom = 24;
  const most = Math.max(...measured.map((rate) => rate || 0), ...measured.map((_, step) => parts.reduce((sum, part) => sum + part.bytes[step], 0) / 300), 1);
  drawnCanvas(into, (width) => Math.max(180, Math.min(300, width * 0.3)), (context, width, height) => {
    const across = (step) => left + (step / 288) * (width - left - 8), up = (rate) => height - bottom - (rate / most) * (height - top - bottom);
    context.strokeStyle = color("line");
    context.fillStyle = color("soft");
    context.textAlign = "right";
    for (const tick of roundTicks(0, most, 4)) {
      context.beginPath(); context.moveTo(left, up(tick)); context.lineTo(width - 8, up(tick)); context.stroke();
      context.fillText(rateText(tick), left - 6, up(tick) + 4);
    }
    context.textAlign = "center";
    for (let hour = 0; hour <= 24; hour += width < 600 ? 6 : 3) context.fillText(`${hour}:00`, Math.min(width - 20, across(hour * 12)), height - 6);
    measured.forEach((rate, step) => {
      const wide = across(step + 1) - across(step) + 0.4;
      if (rate === null) { context.fillStyle = color("gap"); context.fillRect(across(step), height - bottom - 3, wide, 3); return; }
      context.fillStyle = color("unexplained");
      context.fillRect(across(step), up(rate), wide, height - bottom - up(rate));
      let below = 0;
      parts.forEach((part, number) => {
        const share = part.bytes[step] / 300;
        if (!share) return;
        context.fillStyle = color(part.application_id === null ? "soft" : hue(number));
        context.fillRect(across(step), up(below + share), wide, up(below) - up(below + share));
        below += share;
      });
    });
  }, "Traffic in steps of five minutes, by application");
  into.append(make("p", { class: "legend" }, ...parts.map((part, number) => make("span", {}, swatch(part.application_id === null ? "soft" : hue(number)),
    part.application_id === null ? "all others" : make("a", { href: `application.html#${applicationHash(part.application_id)}` }, nameText(part.application_id, 50)))),
  make("span", {}, swatch("unexplained"), "unattributed"), make("span", {}, swatch("gap"), "not polled")));
}

drawers.run = async () => {
  const draw = async () => {
    const [cluster, job, started] = location.hash.slice(1).split("/").map(decodeURIComponent);
    const at = Number(started), hour = started && Number.isFinite(at) && Math.abs(at) < 8e12 ? new Date(at * 1000).toISOString().slice(0, 13) : null;
    const found = hour ? (await loaded(`run/${hour}`).catch(() => [])).find((run) => run.cluster === cluster && run.job_id === job && run.started_at === at) : null;
    byId("message").hidden = true;
    document.querySelectorAll("#facts").forEach((old) => old.remove());
    for (const figure of document.querySelectorAll("main figure")) figure.hidden = !found;
    if (!found) { say(job ? `This release has no run ${nameText(job)} that started then.` : "No run selected. Search for a job id."); return; }
    await showRun(found);
  };
  addEventListener("hashchange", draw);
  await draw();
};

async function showRun(run) {
  byId("title").textContent = `Run ${nameText(run.job_id, 80)}`;
  document.title = `Run ${nameText(run.job_id, 80)} · iosig ${document.documentElement.dataset.release}`;
  byId("purpose").after(make("div", { id: "facts" }, facts([
    ["application", nameText(run.application)], ["user", nameText(run.user)], ["account", nameText(run.account)], ["cluster", nameText(run.cluster)],
    ["nodes, tasks", `${countText(run.node_count)}, ${countText(run.task_count)}`], ["state", run.state],
    ["started (UTC)", instantText(run.started_at)], ["lasted", durationText(run.duration_s)],
    ["waited", run.submitted_at === null ? UNKNOWN : durationText(run.started_at - run.submitted_at)], ["partition", nameText(run.partition)],
  ])));
  const started = new Date(run.started_at * 1000).toISOString(), values = { cluster: run.cluster, job_id: run.job_id, started_at: started };
  for (const name of ["findings", "ranks", "sample", "io", "slowed", "advice", "neighbors"]) { tellQuery(name, values); drawnIn(name).replaceChildren(); }
  themeChanged.clear();
  showTraces(run.traces || []);
  const io = run.io || [];
  if (io.length) drawnIn("io").append(plainTable(["file system", "direction", "moved", "source", "range", "confidence", "own bytes", "all jobs", "class", "period"], io.map((one) => [
    nameText(one.filesystem, 40), one.direction, volumeText(one.estimated_bytes), `${(one.estimate_source === "none" ? one.outcome : one.estimate_source).replaceAll("_", " ")}${one.is_above_filesystem ? " (above the file system)" : ""}`,
    isKnown(one.estimated_high_bytes) ? `${volumeText(one.estimated_low_bytes)} to ${volumeText(one.estimated_high_bytes)}` : UNKNOWN, ratioText(one.confidence), volumeText(one.own_bytes), volumeText(one.filesystem_bytes), one.label ? `${one.label}${inferredText(one.class_basis)}` : (one.class_outcome || UNKNOWN).replaceAll("_", " "), `${durationText(one.period_s)}${inferredText(one.period_basis)}`])));
  else nothing(drawnIn("io"), "The bytes of this run are unknown: no polls, counters or traces cover it.");
  showSlowed(run);
  const id = io.map((one) => one.application_id).find(isKnown);
  const application = id ? (await loaded(`application/${fileHash(id)}`).catch(() => [])).find((one) => one.application_id === id) : null;
  const drawn = io.filter((one) => one.rates?.some((rate) => rate > 0));
  for (const one of drawn) {
    const curve = application?.subjects.find((subject) => subject.filesystem === one.filesystem && subject.direction === one.direction)?.curve?.[0];
    drawnIn("sample").append(make("h3", {}, `${one.direction} on ${nameText(one.filesystem, 40)}${one.is_exact ? ", counted for this job alone" : ", all traffic"}`));
    drawSample(drawnIn("sample"), one, curve, run.duration_s);
  }
  if (!drawn.length) nothing(drawnIn("sample"), "No sample of this run.");
  else if (application) drawnIn("sample").append(make("p", {}, "Its application: ", make("a", { href: `application.html#${applicationHash(id)}` }, nameText(id, 80)), "."));
  byId("advice").hidden = !id;
  if (id) await showAdvice((row) => row.application_id === id, "filesystem", `iosig advise ${shellWord(id)}`);
  await showNeighbors(run, [...new Set(io.map((one) => one.filesystem))]);
}

function showTraces(traces) {
  const mapped = traces.flatMap((trace) => trace.maps);
  byId("findings").hidden = !traces.length;
  byId("ranks").hidden = !mapped.length;
  for (const trace of traces) {
    const into = drawnIn("findings");
    into.append(make("p", { class: "soft" }, `Traced by ${nameText(trace.tracer, 40)}: ${countText(trace.process_count)} ranks, ${durationText(trace.duration_s)}.`));
    if (!trace.findings.length) into.append(make("p", {}, "No findings in the published data of the trace."));
    else into.append(make("ol", { class: "found" }, ...trace.findings.map((one) => make("li", { class: one.severity },
      make("p", {}, make("strong", {}, `${one.severity}: ${one.rule.replaceAll("_", " ")}${one.direction ? ` (${one.direction})` : ""}`), isKnown(one.impact_ratio) ? ` · ${ratioText(one.impact_ratio)} of the run` : ""),
      make("p", {}, nameText(one.sentence)), make("p", {}, `→ ${one.remedy}`)))));
    if (trace.layers.length) into.append(plainTable(["layer", "read", "written", "reads", "writes", "opens", "stats", "reading", "writing", "metadata"], trace.layers.map((one) => [
      nameText(one.module, 40), volumeText(one.read_bytes), volumeText(one.written_bytes), ...[one.read_count, one.write_count, one.open_count, one.stat_count].map(countText), ...[one.read_time_s, one.write_time_s, one.metadata_time_s].map(durationText)])));
  }
  const until = Math.max(0, ...mapped.map((one) => one.step_s * one.time_bytes.length));
  for (const one of mapped) drawRanks(drawnIn("ranks"), one, until);
}

// Draws the heat map of a trace by rank and time, with sums over ranks above and the bytes of each rank to the right.
function drawRanks(into, one, until) {
  const left = 64, right = 92, gap = 6, top = 60, bottom = 24, levels = decoded(one.shades);
  const times = one.time_bytes.length, ranks = one.rank_bytes.length, edges = one.rank_edges, last = edges.at(-1);
  const hueOf = one.direction === "write" ? "iosig-blue" : "iosig-orange";
  into.append(make("h3", {}, `${one.direction === "write" ? "Writes" : "Reads"} by ${nameText(one.module, 40)}, up to ${rateText(Math.max(...one.time_bytes) / one.step_s)} together and ${volumeText(Math.max(...one.rank_bytes))} a rank`));
  drawnCanvas(into, () => 300, (context, width, height) => {
    const across = (seconds) => left + (seconds / until) * (width - left - right - gap), down = (rank) => top + gap + (rank / last) * (height - top - gap - bottom);
    const mostTogether = Math.max(...one.time_bytes), mostOfRank = Math.max(...one.rank_bytes);
    const shades = Array.from({ length: 7 }, (_, number) => color(`iosig-shade${number}`));
    levels.forEach((level, place) => {
      if (!level) return;
      const column = place % times, row = Math.floor(place / times), x = across(column * one.step_s), y = down(edges[row]);
      context.fillStyle = shades[level - 1];
      context.fillRect(x, y, across((column + 1) * one.step_s) - x + 0.4, down(edges[row + 1]) - y + 0.4);
    });
    context.fillStyle = color(hueOf);
    one.time_bytes.forEach((bytes, column) => { const tall = (bytes / mostTogether) * (top - 8), x = across(column * one.step_s); context.fillRect(x, top - tall, across((column + 1) * one.step_s) - x + 0.4, tall); });
    one.rank_bytes.forEach((bytes, row) => { const y = down(edges[row]); context.fillRect(width - right, y, (bytes / mostOfRank) * (right - 8), down(edges[row + 1]) - y + 0.4); });
    context.fillStyle = color("soft");
    context.textAlign = "center";
    for (const tick of timeTicks(until, width / 110)) context.fillText(clockText(tick), Math.min(width - right - 20, across(tick)), height - 6);
    context.textAlign = "right";
    for (const rank of [0, Math.floor(last / 2), last - 1].filter((rank, place, all) => all.indexOf(rank) === place)) context.fillText(countText(rank), left - 6, Math.min(down(rank + 0.5) + 4, height - bottom));
  }, `Heat map of ${one.direction}s: one row per rank or group of ranks, one column per time step`);
  into.append(make("p", { class: "legend" }, make("span", {}, `A cell holds up to ${volumeText(one.high_bytes)}; the palest cells hold at most a ten-thousandth of that.`)));
}

function showSlowed({ slowed, burst_count: count }) {
  const into = drawnIn("slowed"), bursts = slowed || [];
  if (!count) { nothing(into, "No bursts of this run were detected in the traffic, so slowdowns are unknown."); return; }
  into.append(make("p", {}, `${countText(bursts.length)} of ${countText(count)} ${count === 1 ? "burst" : "bursts"} detected in the traffic ${bursts.length === 1 || count === 1 ? "was" : "were"} slowed.`));
  if (bursts.length) into.append(plainTable(["file system", "burst", "expected (UTC)", "began later", "longer", "range", "most there", "its bytes"], bursts.map((row) => [
    `${row.direction} on ${nameText(row.filesystem, 40)}`, String(row.burst), instantText(row.burst_expected_at), durationText(row.start_delay_s), ...longerCells(row), ...otherCells(row)])));
}

function drawSample(into, one, curve, lasted) {
  const left = 76, top = 6, bottom = 22, samples = one.rates.map((rate) => (rate === null ? null : rate * one.scale_bytes_per_s));
  const longest = Math.max(lasted || 0, one.start_s + samples.length * one.step_s), most = Math.max(...samples.map((rate) => rate || 0), curve ? Math.max(...curve.rates) * curve.scale_bytes_per_s : 0, 1);
  drawnCanvas(into, () => 170, (context, width, height) => {
    const across = (seconds) => left + (Math.max(0, Math.min(longest, seconds)) / longest) * (width - left - 8), up = (rate) => height - bottom - (rate / most) * (height - top - bottom);
    context.strokeStyle = color("line");
    context.fillStyle = color("soft");
    context.textAlign = "right";
    for (const tick of roundTicks(0, most, 3)) { context.beginPath(); context.moveTo(left, up(tick)); context.lineTo(width - 8, up(tick)); context.stroke(); context.fillText(rateText(tick), left - 6, up(tick) + 4); }
    context.textAlign = "center";
    for (const tick of timeTicks(longest, width / 90)) context.fillText(clockText(tick), Math.min(width - 24, across(tick)), height - 5);
    samples.forEach((rate, step) => {
      const from = across(one.start_s + step * one.step_s), until = across(one.start_s + (step + 1) * one.step_s);
      context.fillStyle = color(rate === null ? "gap" : "run");
      if (rate === null) context.fillRect(from, height - bottom - 3, until - from, 3);
      else context.fillRect(from, up(rate), until - from + 0.3, height - bottom - up(rate));
    });
    if (!curve) return;
    context.strokeStyle = color("accent");
    context.lineWidth = 2;
    context.beginPath();
    curve.rates.forEach((rate, step) => { context.lineTo(across(step * curve.step_s), up(rate * curve.scale_bytes_per_s)); context.lineTo(across((step + 1) * curve.step_s), up(rate * curve.scale_bytes_per_s)); });
    context.stroke();
  }, "The run's sample, and its application's signature over it");
}

async function showNeighbors(run, filesystems) {
  const ended = run.ended_at ?? run.started_at, known = await loaded("filesystems").catch(() => []), others = new Map();
  for (const [name, place] of known.filter(([name]) => filesystems.includes(name))) {
    for (let at = Math.floor(run.started_at / 86400); at <= Math.floor(ended / 86400) && at < run.started_at / 86400 + 4; at++) {
      const told = await loaded(`filesystem/${place}-${new Date(at * 86400000).toISOString().slice(0, 10)}`).catch(() => null);
      for (const other of told ? rowsOf(told.runs) : []) {
        const key = `${other.cluster} ${other.job_id} ${other.started_at}`;
        if (other.started_at < ended && (other.ended_at ?? Infinity) > run.started_at && key !== `${run.cluster} ${run.job_id} ${run.started_at}`) others.set(`${key} ${name}`, { ...other, filesystem: name });
      }
    }
  }
  const found = [...others.values()].sort((a, b) => (b.estimated_bytes || 0) - (a.estimated_bytes || 0));
  if (!found.length) { nothing(drawnIn("neighbors"), "No other known jobs ran at the same time."); return; }
  drawnIn("neighbors").append(plainTable(["job", "application", "user", "nodes", "file system", "total bytes (estimate)", "started (UTC)", "ended"], found.slice(0, 30).map((other) => [
    make("a", { href: runHref(other.cluster, other.job_id, other.started_at) }, nameText(other.job_id, 40)), nameText(other.application, 60), nameText(other.user, 40), countText(other.node_count), nameText(other.filesystem, 30), volumeText(other.estimated_bytes), instantText(other.started_at), instantText(other.ended_at)])));
  if (found.length > 30) drawnIn("neighbors").append(make("p", {}, `And ${countText(found.length - 30)} more.`));
}
