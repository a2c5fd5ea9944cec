// The population page: bar charts of classes, volumes and periods.
const WAYS = { write: "iosig-blue", read: "iosig-orange" };

drawers.population = async () => {
  const told = await loaded("population");
  const days = rowsOf(told.days);
  if (!days.length) {
    for (const figure of document.querySelectorAll("main figure")) figure.hidden = true;
    say("This release has no classes of runs.");
    return;
  }
  for (const way of ["write", "read"]) showClasses(drawnIn("classes"), days.filter((day) => day.direction === way), way);
  showHistogram(drawnIn("volumes"), told.volumes, volumeText, "runs by their own bytes");
  showHistogram(drawnIn("periods"), told.periods, durationText, "runs by period");
  drawnIn("shares").append(plainTable(["direction", "class", "runs", "of runs", "of bytes", "even and periodic"], rowsOf(told.shares).map((row) => [
    row.direction, row.label, countText(row.run_count), ratioText(row.run_ratio), ratioText(row.bytes_ratio), ratioText(row.periodic_ratio)])));
  drawnIn("groups").append(plainTable(["application", "moved", "runs", "node hours", "commonest class", "has it", "median period"], rowsOf(told.groups).map((row) => [
    make("a", { href: `applications.html#application=${encodeURIComponent(row.application ?? "")}` }, nameText(row.application, 60)), volumeText(row.bytes), countText(row.run_count), numberText(row.node_hours), row.label, ratioText(row.stability), durationText(row.median_period_s)])));
};

function showClasses(into, rows, way) {
  const known = [...new Set(rows.map((row) => row.ended_on))].sort();
  if (!known.length) return;
  const first = Date.parse(known[0]) / 864e5, last = Date.parse(known.at(-1)) / 864e5, every = Math.ceil((last - first + 1) / 90);
  const steps = Math.floor((last - first) / every) + 1, names = Object.keys(CLASSES);
  const counts = Array.from({ length: steps }, () => Object.fromEntries(names.map((name) => [name, 0])));
  for (const row of rows) counts[Math.floor((Date.parse(row.ended_on) / 864e5 - first) / every)][row.label] += row.run_count;
  const most = Math.max(...counts.map((step) => names.reduce((sum, name) => sum + step[name], 0)), 1);
  into.append(make("h3", {}, `${way}s${every > 1 ? `, by ${every} days` : ""}`));
  drawnCanvas(into, () => 170, (context, width, height) => {
    const left = 56, bottom = 22, across = (step) => left + (step / steps) * (width - left - 8), up = (count) => height - bottom - (count / most) * (height - bottom - 8);
    axisOfCounts(context, width, left, up, most);
    counts.forEach((step, number) => {
      let below = 0;
      const wide = Math.min(60, (across(number + 1) - across(number)) * 0.85);
      for (const name of names) {
        context.fillStyle = classColor(name);
        context.fillRect(across(number + 0.5) - wide / 2, up(below + step[name]), wide, up(below) - up(below + step[name]));
        below += step[name];
      }
      const each = Math.ceil((steps * 84) / (width - left));
      context.fillStyle = color("soft");
      context.textAlign = "center";
      if (number % each === 0) context.fillText(new Date((first + number * every) * 864e5).toISOString().slice(0, 10), Math.max(across(number + 0.5), left + 30), height - 5);
    });
  }, `Classes of ${way}s over time`);
  into.append(legend(new Set(rows.map((row) => row.label))));
}

function axisOfCounts(context, width, left, up, most) {
  context.strokeStyle = color("line");
  context.fillStyle = color("soft");
  context.textAlign = "right";
  for (const tick of roundTicks(0, most, 4).filter(Number.isInteger)) {
    context.beginPath(); context.moveTo(left, up(tick)); context.lineTo(width - 8, up(tick)); context.stroke();
    context.fillText(countText(tick), left - 6, up(tick) + 4);
  }
}

function showHistogram(into, told, text, label) {
  const used = told.edges.slice(0, -1).map((_, place) => Object.values(told.counts).some((counts) => counts[place] > 0));
  const first = used.indexOf(true), last = used.lastIndexOf(true);
  if (first < 0) { nothing(into, "None."); return; }
  const bars = last - first + 1, most = Math.max(...Object.values(told.counts).flat());
  drawnCanvas(into, () => 190, (context, width, height) => {
    const left = 56, bottom = 22, across = (place) => left + (place / bars) * (width - left - 8), up = (count) => height - bottom - (count / most) * (height - bottom - 8);
    axisOfCounts(context, width, left, up, most);
    const ways = Object.keys(told.counts), wide = Math.min(40, ((across(1) - across(0)) * 0.85) / ways.length);
    ways.forEach((way, number) => told.counts[way].slice(first, last + 1).forEach((count, place) => {
      context.fillStyle = color(WAYS[way]);
      context.fillRect(across(place + 0.5) + (number - ways.length / 2) * wide, up(count), wide, height - bottom - up(count));
    }));
    const each = Math.ceil((bars * 76) / (width - left));
    context.fillStyle = color("soft");
    context.textAlign = "center";
    for (let place = 0; place < bars; place += each) context.fillText(text(told.edges[first + place]), Math.max(across(place), left + 14), height - 5);
  }, label);
  into.append(make("p", { class: "legend" }, ...Object.entries(WAYS).map(([way, role]) => make("span", {}, swatch(role), way))));
}
