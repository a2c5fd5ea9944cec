// Draws the figures of each page.
const drawers = {};

const applicationLink = (row) => make("a", { href: `application.html#${applicationHash(row.application_id, row.filesystem, row.direction)}` }, make("bdi", {}, nameText(row.application_id, 60)));

drawers.applications = async () => {
  const points = rowsOf(await loaded("map")).filter((point) => point.month_bytes > 0);
  if (points.length) drawMap(drawnIn("map"), points, ({ application_id }) => { location.href = `application.html#${applicationHash(application_id)}`; });
  else nothing(drawnIn("map"), "No application has a signature yet. A signature needs five runs.");
  const rows = rowsOf(await loaded("applications"));
  const place = make("div");
  drawnIn("list").append(place);
  const table = longTable(place, rows, [
    { title: "application", field: "application_id", isFirst: true, isFiltered: true, width: 144, draw: (cell) => applicationLink(cell.getData()) },
    { title: "user", field: "user", isFiltered: true, width: 72 },
    { title: "file system", field: "filesystem", isFiltered: true, width: 100 },
    { title: "direction", field: "direction", isFirst: true, width: 92 },
    { title: "signature", field: "spark", width: 136, draw: (cell) => (cell.getData().outcome === "extracted" ? sparkline(cell.getValue()) : make("small", {}, cell.getData().outcome.replaceAll("_", " "))) },
    { title: "volume", field: "volume_bytes", isNumber: true, isFirst: true, text: (value, row) => (row.outcome === "extracted" ? volumeText(value) : UNKNOWN), width: 92 },
    { title: "peak", field: "peak_bytes_per_s", isNumber: true, text: rateText, width: 86 },
    { title: "run", field: "duration_s", isNumber: true, text: durationText, width: 76 },
    { title: "bursts", field: "burst_count", isNumber: true, text: countText, width: 62 },
    { title: "period", field: "period_s", isNumber: true, text: durationText, width: 76 },
    { title: "class", field: "label", width: 84 },
    { title: "expected_correlation", field: "expected_correlation", isNumber: true, isFirst: true, text: trustText, width: 60 },
    { title: "runs", field: "sample_count", isNumber: true, text: countText, width: 56 },
    { title: "last run", field: "last_run_ended_at", isNumber: true, text: (value) => instantText(value).slice(0, 10), width: 96 },
    { title: "changed", field: "is_changed", text: (value) => (value ? "changed" : ""), width: 82 },
  ], [{ column: "volume_bytes", dir: "desc" }]);
  const follow = () => {
    const wanted = new URLSearchParams(location.hash.slice(1));
    table.clearFilter(true);
    for (const field of ["user", "application"]) if (wanted.has(field)) table.addFilter(field, "=", wanted.get(field));
  };
  await new Promise((done) => table.on("tableBuilt", done));
  addEventListener("hashchange", follow);
  follow();
};

// Parses a permalink to an application: its id, and optionally the file system and direction.
function askedApplication() {
  const parts = location.hash.slice(1).split("/").map(decodeURIComponent), last = parts.at(-1);
  if (parts.length >= 5 && (last === "read" || last === "write")) return [parts.slice(0, -2).join("/"), parts.at(-2), last];
  return [parts.join("/")];
}

drawers.application = async () => {
  const draw = async () => {
    byId("message").hidden = true;
    const [id, filesystem, direction] = askedApplication();
    const found = id ? (await loaded(`application/${fileHash(id)}`).catch(() => [])).find((one) => one.application_id === id) : null;
    for (const figure of document.querySelectorAll("main figure")) figure.hidden = !found;
    document.querySelectorAll("#choices").forEach((old) => old.remove());
    if (!found) { say(id ? `This release has no application ${nameText(id)}.` : "No application selected. Search for one, or choose one from the list."); return; }
    const chosen = found.subjects.find((one) => one.filesystem === filesystem && one.direction === direction) || found.subjects[0];
    await showApplication(found, chosen);
  };
  addEventListener("hashchange", draw);
  await draw();
};

async function showApplication(found, chosen) {
  byId("title").replaceChildren(make("bdi", {}, nameText(found.application_id)));
  document.title = `${nameText(found.application_id, 80)} · iosig ${document.documentElement.dataset.release}`;
  byId("purpose").textContent = `${found.subjects.length > 1 ? "" : `${chosen.direction} on ${nameText(chosen.filesystem)}. `}By ${nameText(found.user)} on ${countText(found.node_count)} nodes; runs in the last month: ${countText(chosen.facts.month_run_count)}.`;
  byId("purpose").after(make("nav", { id: "choices", "aria-label": "File systems and directions" }, ...found.subjects.map((one) => make("a", {
    href: `#${applicationHash(found.application_id, one.filesystem, one.direction)}`, "aria-current": one === chosen ? "true" : false,
  }, `${one.direction} on ${nameText(one.filesystem, 40)}`))));
  const values = { application_id: found.application_id, filesystem: chosen.filesystem, direction: chosen.direction };
  for (const name of ["signature", "operations", "bursts", "expected_correlation", "contention", "advice", "history", "runs"]) { tellQuery(name, values); drawnIn(name).replaceChildren(); }
  themeChanged.clear();
  const runs = chosen.runs || [], leftOut = new Set(JSON.parse(chosen.facts.outlier_job_ids || "[]"));
  showSignature(chosen, runs, leftOut);
  showOperations(chosen, runs);
  showBursts(chosen.bursts || []);
  showTrust(chosen);
  showContention(found);
  showRuns(runs, leftOut);
  await showAdvice((row) => row.application_id === found.application_id, "filesystem", `iosig advise ${shellWord(found.application_id)}`);
  await showHistory(found.application_id, chosen);
}

const OUTCOMES = {
  too_few_samples: "Too few runs: a signature needs five.",
  no_io: "No bytes were moved in this direction.",
  no_common_bursts: "The runs have no burst in common.",
};

const openRun = (run) => { location.href = runHref(run.cluster, run.job_id, run.started_at); };

const longestRun = (chosen, runs) => Math.max(chosen.facts.duration_s || 0, ...runs.map((run) => run.start_s + run.rates.length * run.step_s).filter(isKnown), 1);

// Extends a curve to the time axis of the runs.
function padCurve(curve, longest) {
  const steps = Math.ceil(longest / curve.step_s), padded = (values) => values.concat(Array(Math.max(0, steps - values.length)).fill(null));
  return { ...curve, rates: padded(curve.rates), lows: padded(curve.lows), highs: padded(curve.highs) };
}

function showSignature(chosen, runs, leftOut) {
  const into = drawnIn("signature"), curve = chosen.curve?.[0], longest = longestRun(chosen, runs);
  const drawable = runs.filter((run) => run.rates?.length);
  if (drawable.length) drawRuns(into, drawable, longest, leftOut, openRun);
  if (curve) {
    const below = make("div", { class: "curve" });
    into.append(below);
    drawCurve(below, padCurve(curve, longest), chosen.bursts || []);
  } else into.append(make("p", { class: "nothing" }, OUTCOMES[chosen.facts.outcome] || "There is no signature."));
}

// Shows the signature of operations; the page has its amounts in the columns of bytes.
function showOperations(chosen, runs) {
  const into = drawnIn("operations"), known = chosen.operations?.[0];
  byId("operations").hidden = !known;
  if (!known) return;
  if (known.rates) {
    const curve = make("div", { class: "curve" });
    into.append(curve);
    drawCurve(curve, padCurve(known, longestRun(chosen, runs)), [], operationRateText);
  } else into.append(make("p", { class: "nothing" }, known.outcome === "no_io" ? "No operations in this direction." : OUTCOMES[known.outcome] || "There is no signature."));
  into.append(facts([
    ["operations", operationsText(known.volume_bytes)], ["peak", operationRateText(known.peak_bytes_per_s)],
    ["class", known.label], ["period", periodText(known)],
    ["expected_correlation", trustText(known.expected_correlation)],
    ["runs used", `${countText(known.used_sample_count)} of ${countText(known.sample_count)}`],
  ]));
}

const periodText = (known) => (isKnown(known.period_s) ? `${durationText(known.period_s)} (false alarm ${numberText(known.false_alarm_probability)})` : "none found");

function showBursts(bursts) {
  if (!bursts.length) { nothing(drawnIn("bursts"), "None."); return; }
  drawnIn("bursts").append(plainTable(["burst", "starts", "peaks", "ends", "moves", "supported by"], bursts.map((one) => [
    String(one.burst), durationText(one.start_s), durationText(one.peak_s), durationText(one.end_s), volumeText(one.volume_bytes), ratioText(one.support_ratio)])));
}

function showTrust({ facts: known, checks }) {
  const into = drawnIn("expected_correlation");
  into.append(facts([
    ["method", known.method], ["outcome", known.outcome.replaceAll("_", " ")],
    ["expected_correlation", trustText(known.expected_correlation)],
    ["runs used", `${countText(known.used_sample_count)} of ${countText(known.sample_count)}`],
    ["duration", durationText(known.duration_s)], ["volume", volumeText(known.volume_bytes)], ["peak", rateText(known.peak_bytes_per_s)],
    ["others' background", rateText(known.background_bytes_per_s)], ["class", known.label],
    ["period", periodText(known)],
    ["since the previous release", known.is_changed === null ? "not compared" : known.is_changed ? `changed: correlation ${numberText(known.change_correlation)}` : "unchanged"],
    ["first and last run", `${instantText(known.first_run_started_at)} to ${instantText(known.last_run_ended_at)}`],
  ]));
  if (checks?.length) into.append(plainTable(["traced run", "correlation", "cross-correlation", "volume", "traced", "bursts missed", "false", ""], checks.map((one) => [
    nameText(one.trace_id), numberText(one.correlation), numberText(one.cross_correlation), volumeText(one.volume_bytes), volumeText(one.traced_bytes), countText(one.missed_burst_count), countText(one.false_burst_count), one.is_training_run ? "used by the signature" : ""])));
}

// Formats the number of slowed runs, relative to the runs that could be analyzed.
const slowedText = (slowed, looked) => (looked ? `${countText(slowed || 0)} of ${countText(looked)} runs with detected bursts ${slowed === 1 ? "was" : "were"} slowed.` : "No bursts of runs were detected in the traffic, so slowdowns are unknown.");
const otherLink = (id) => (id === null ? "unattributed" : make("a", { href: `application.html#${applicationHash(id)}` }, make("bdi", {}, nameText(id, 60))));

function showContention({ contention, looked_run_count: looked, slowed_run_count: slowed }) {
  const into = drawnIn("contention");
  into.append(make("p", {}, slowedText(slowed, looked)));
  if (contention?.length) into.append(plainTable(["", "application", "file system", "total delay", "runs", "bursts"], contention.map((row) => [
    row.role === "slows" ? "it slows" : "slowed by", otherLink(row.other_application_id), nameText(row.filesystem, 40), durationText(row.delay_s), countText(row.run_count), countText(row.burst_count)])));
}

// Shows the recommended starts at the last poll, of one application or on one file system.
async function showAdvice(isMeant, first, command) {
  const told = await loaded("advice"), rows = rowsOf(told.rows).filter(isMeant).sort(first === "filesystem" ? (a, b) => a.place - b.place : (a, b) => b.now_bytes - a.now_bytes), into = drawnIn("advice");
  into.replaceChildren();
  if (rows.length) into.append(make("p", {}, `At ${instantText(told.at)} UTC, time of the last poll of this release.`), plainTable([first === "filesystem" ? "file system" : "application", "wait", "no room now", "then", "range"], rows.map((row) => [
    first === "filesystem" ? nameText(row.filesystem, 40) : otherLink(row.application_id), durationText(row.delay_s), volumeText(row.now_bytes), volumeText(row.then_bytes), `${volumeText(row.low_then_bytes)} to ${volumeText(row.high_then_bytes)}`])));
  else into.append(make("p", { class: "nothing" }, told.lacking ? `No recommendation: ${nameText(told.lacking, 300)}` : "None is told here: it is made for the applications that move most."));
  into.append(make("p", {}, "For the present time, and for any application: ", make("code", {}, nameText(command, 600))));
}

async function showHistory(id, { filesystem, direction }) {
  const told = await loaded(`history/${fileHash(id).slice(0, 2)}`).catch(() => []);
  const history = (told.find((one) => one.application_id === id)?.history || []).filter((row) => row.filesystem === filesystem && row.direction === direction);
  drawnIn("history").replaceChildren(plainTable(["release", "outcome", "volume", "bursts", "expected_correlation"], history.toReversed().map((one) => [
    nameText(one.release_id), one.outcome.replaceAll("_", " "), volumeText(one.volume_bytes), countText(one.burst_count), trustText(one.expected_correlation)])));
}

const SOURCES = { server: "all traffic", jobstats: "counted for the run", client: "traced" };

function showRuns(runs, leftOut) {
  if (!runs.length) { nothing(drawnIn("runs"), "No runs are listed."); return; }
  drawnIn("runs").append(plainTable(["job", "started (UTC)", "lasted", "bytes of the sample", "polls missing", "source", ""], runs.toReversed().map((run) => [
    make("a", { href: runHref(run.cluster, run.job_id, run.started_at) }, nameText(run.job_id, 60)), instantText(run.started_at), durationText(run.duration_s), volumeText(run.sample_bytes), ratioText(run.missing_ratio), SOURCES[run.source ?? "server"], leftOut.has(run.job_id) ? "left out" : ""])));
}

drawers.tables = async () => {
  const tables = [...document.querySelectorAll("main details")], texts = tables.map((table) => table.textContent.toLowerCase());
  byId("sought").addEventListener("input", (event) => {
    const words = event.target.value.toLowerCase().split(/\s+/);
    tables.forEach((table, place) => { table.hidden = !words.every((word) => texts[place].includes(word)); });
  });
  const open = () => { const meant = byId(`table-${location.hash.slice(1)}`); if (meant) { meant.open = true; meant.scrollIntoView(); } };
  addEventListener("hashchange", open);
  open();
};
