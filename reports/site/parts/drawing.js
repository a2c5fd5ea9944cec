// Figures drawn on canvases; all sizes are in CSS pixels.
const CLASSES = { START: "sky", END: "blue", HILL: "green", CANYON: "purple", UNIFORM: "orange", OTHER: "gray", NO_USAGE: "pale" };
const classColor = (label) => color(label in CLASSES ? `iosig-${CLASSES[label]}` : "soft");
const HUES = ["blue", "orange", "green", "vermilion", "purple", "sky"];
const hue = (number) => `iosig-${HUES[number % HUES.length]}`;

function swatch(role) {
  const made = make("span", { class: "swatch" });
  made.style.background = `var(--${role})`;
  return made;
}

// Draws a canvas, and redraws it if its width or the theme changes.
function drawnCanvas(into, heightOf, paint, label) {
  const canvas = make("canvas", { class: "picture", role: "img", "aria-label": label });
  into.append(canvas);
  const draw = () => {
    const width = into.clientWidth, height = heightOf(width);
    if (!width) return;
    const scale = devicePixelRatio || 1;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.height = `${height}px`;
    const context = canvas.getContext("2d");
    context.scale(scale, scale);
    context.font = "12px system-ui, sans-serif";
    paint(context, width, height);
  };
  new ResizeObserver(draw).observe(into);
  themeChanged.add(draw);
  draw();
  return { canvas, draw };
}

function roundTicks(low, high, most) {
  const raw = (high - low) / Math.max(1, most) || 1, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= raw);
  const found = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high + step * 1e-6; tick += step) found.push(tick);
  return found;
}

// Ticks of a time axis from 0, in familiar steps.
function timeTicks(longest, most) {
  const steps = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 10800, 21600, 43200, 86400];
  const step = steps.find((one) => longest / one <= most) || 86400 * Math.ceil(longest / 86400 / most);
  const found = [];
  for (let tick = 0; tick <= longest; tick += step) found.push(tick);
  return found;
}

const clockText = (seconds) =>
  seconds >= 3600 ? `${Math.floor(seconds / 3600)}:${String(Math.round((seconds % 3600) / 60)).padStart(2, "0")} h` : seconds >= 60 ? `${+(seconds / 60).toFixed(1)} min` : `${seconds} s`;

// The population map: the burstiness of each application over its monthly bytes, both on log scales.
function drawMap(into, points, open) {
  const margin = { left: 62, right: 14, top: 10, bottom: 40 };
  const bounds = (values) => {
    const low = Math.min(...values), high = Math.max(...values);
    return [low / 1.5, high * 1.5];
  };
  const [left, right] = bounds(points.map((point) => point.month_bytes)), [bottom, top] = bounds(points.map((point) => Math.max(point.burstiness, 1)));
  let places = [];
  const heightOf = (width) => Math.max(260, Math.min(420, width * 0.5));
  const { canvas } = drawnCanvas(into, heightOf, (context, width, height) => {
    const across = (value) => margin.left + (Math.log(value / left) / Math.log(right / left)) * (width - margin.left - margin.right);
    const up = (value) => height - margin.bottom - (Math.log(value / bottom) / Math.log(top / bottom)) * (height - margin.top - margin.bottom);
    context.strokeStyle = color("line");
    context.fillStyle = color("soft");
    context.textAlign = "center";
    // multiples of 2 and 5 are labeled too if the axis spans few powers of ten
    const decades = Math.log10(right / left), steps = decades < 3 ? [1, 2, 5] : [1];
    for (let power = Math.floor(Math.log10(left)); power <= Math.log10(right); power++) for (const step of steps) {
      const value = step * 10 ** power, x = across(value);
      if (value < left || value > right) continue;
      context.beginPath(); context.moveTo(x, margin.top); context.lineTo(x, height - margin.bottom); context.stroke();
      if (width > 600 || (decades < 3 ? step === 1 || decades < 1.5 : power % 2 === 0)) context.fillText(volumeText(value), x, height - margin.bottom + 16);
    }
    context.fillText("bytes per month", (margin.left + width - margin.right) / 2, height - 6);
    context.textAlign = "right";
    for (const tick of [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000].filter((one) => one >= bottom && one <= top)) {
      const y = up(tick);
      context.beginPath(); context.moveTo(margin.left, y); context.lineTo(width - margin.right, y); context.stroke();
      context.fillText(`× ${tick}`, margin.left - 6, y + 4);
    }
    places = points.map((point) => {
      const place = { x: across(point.month_bytes), y: up(Math.max(point.burstiness, 1)), radius: Math.min(16, 2.5 + Math.sqrt(point.run_count)), point };
      context.globalAlpha = 0.72;
      context.fillStyle = classColor(point.label);
      context.beginPath(); context.arc(place.x, place.y, place.radius, 0, 2 * Math.PI); context.fill();
      context.globalAlpha = 1;
      context.strokeStyle = color("ground");
      context.stroke();
      return place;
    });
    nameLargest(context, places, width - margin.right);
  }, "Population map: the table below has the same numbers");
  const tip = make("p", { class: "tip", "aria-live": "polite" }, "Hover over a circle to see its application. Click to open it.");
  into.append(legend(new Set(points.map((point) => point.label || "not classified"))), tip);
  const nearest = (event) => {
    const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    let found = null, least = Infinity;
    for (const place of places) {
      const distance = Math.hypot(place.x - x, place.y - y) - place.radius;
      if (distance < 6 && distance < least) [found, least] = [place.point, distance];
    }
    return found;
  };
  canvas.addEventListener("mousemove", (event) => {
    const point = nearest(event);
    canvas.classList.toggle("pointing", point !== null);
    if (point) tip.textContent = `${nameText(point.application_id, 80)}: ${volumeText(point.month_bytes)} a month, peak ${digits(point.burstiness)} × the mean, ${countText(point.run_count)} runs, ${point.label || "not classified"}`;
  });
  canvas.addEventListener("click", (event) => { const point = nearest(event); if (point) open(point); });
}

// Names the applications that move the most bytes, without overlap.
function nameLargest(context, places, right) {
  const taken = [];
  context.textAlign = "left";
  context.fillStyle = color("ink");
  context.strokeStyle = color("ground");
  context.lineWidth = 3;
  for (const { x, y, radius, point } of places.toSorted((a, b) => b.point.month_bytes - a.point.month_bytes).slice(0, right > 600 ? 10 : 4)) {
    const name = nameText(point.application_id, 28), wide = context.measureText(name).width;
    const from = x + radius + 5 + wide > right ? x - radius - 5 - wide : x + radius + 5;
    if (taken.some((other) => Math.abs(other.y - y) < 15 && from < other.until && other.from < from + wide)) continue;
    taken.push({ from, until: from + wide, y });
    context.strokeText(name, from, y + 4);
    context.fillText(name, from, y + 4);
  }
  context.lineWidth = 1;
}

function legend(names) {
  return make("p", { class: "legend" }, ...Object.keys(CLASSES).concat("not classified").filter((name) => names.has(name)).map((name) =>
    make("span", {}, swatch(name in CLASSES ? `iosig-${CLASSES[name]}` : "soft"), name)));
}

// Draws runs as rows, each shaded relative to its own maximum, so that common patterns are visible at a glance.
function drawRuns(into, runs, longest, leftOut, choose) {
  const row = 20, left = innerWidth < 600 ? 62 : 92, right = 12;
  const { canvas } = drawnCanvas(into, () => row * runs.length + 6, (context, width) => {
    const across = (seconds) => left + (seconds / longest) * (width - left - right);
    context.textBaseline = "middle";
    runs.forEach((run, number) => {
      const top = number * row, most = Math.max(...run.rates.filter(isKnown), 1);
      const isOut = leftOut.has(run.job_id);
      context.fillStyle = color(isOut ? "strong" : "soft");
      context.textAlign = "right";
      context.fillText(nameText(run.job_id, 12), left - 8, top + row / 2);
      context.fillStyle = color("panel");
      context.fillRect(left, top + 1, width - left - right, row - 2);
      run.rates.forEach((rate, step) => {
        const from = across(Math.max(0, run.start_s + step * run.step_s)), until = across(Math.min(longest, run.start_s + (step + 1) * run.step_s));
        if (until <= from) return;
        if (!isKnown(rate)) { context.fillStyle = color("gap"); context.globalAlpha = 1; context.fillRect(from, top + row / 2 - 1, until - from, 2); return; }
        context.globalAlpha = 0.9;
        context.fillStyle = color(isOut ? "strong" : "run");
        const height = (rate / most) * (row - 4);
        context.fillRect(from, top + row - 2 - height, until - from, height);
      });
      context.globalAlpha = 1;
    });
  }, "Traffic during each run");
  canvas.addEventListener("click", (event) => {
    const number = Math.floor((event.clientY - canvas.getBoundingClientRect().top) / row);
    if (runs[number]) choose(runs[number]);
  });
}

// Draws a curve with its band, by uPlot; text formats a rate.
function drawCurve(into, curve, bursts, text = rateText) {
  const times = curve.rates.map((_, step) => step * curve.step_s), scaled = (values) => values.map((value) => (isKnown(value) ? value * curve.scale_bytes_per_s : null));
  const hasBand = curve.lows.some(isKnown);
  let plot = null;
  const draw = () => {
    if (plot) plot.destroy();
    const left = innerWidth < 600 ? 62 : 92;
    const axis = { stroke: color("soft"), grid: { stroke: color("line"), width: 1 }, ticks: { stroke: color("line"), width: 1 } };
    plot = new uPlot({
      width: Math.max(into.clientWidth, 200), height: 240, padding: [8, 12, 0, 0], cursor: { drag: { x: true, y: false } },
      legend: { show: true },
      scales: { x: { time: false }, y: { range: (_, low, high) => [0, Math.max(high, 1)] } },
      axes: [
        { ...axis, values: (_, ticks) => ticks.map(clockText), splits: (u, a, low, high) => timeTicks(high, into.clientWidth / 90).filter((tick) => tick >= low) },
        { ...axis, size: left, values: (_, ticks) => ticks.map(text) },
      ],
      series: [
        { label: "time", value: (_, value) => (value === null ? UNKNOWN : durationText(value)) },
        { label: "rate", stroke: color("accent"), width: 2, fill: `${color("accent")}22`, paths: uPlot.paths.stepped({ align: 1 }), points: { show: false }, value: (_, value) => text(value) },
        ...(hasBand ? ["low", "high"].map((label) => ({ label, stroke: `${color("accent")}66`, width: 1, points: { show: false }, value: (_, value) => text(value) })) : []),
      ],
      bands: hasBand ? [{ series: [3, 2], fill: `${color("accent")}22` }] : [],
      hooks: { drawClear: [(u) => bursts.forEach((burst) => {
        const from = u.valToPos(burst.start_s, "x", true), until = u.valToPos(burst.end_s, "x", true);
        u.ctx.fillStyle = color("shade");
        u.ctx.fillRect(from, u.bbox.top, Math.max(1, until - from), u.bbox.height);
      })] },
    }, [times, scaled(curve.rates), ...(hasBand ? [scaled(curve.lows), scaled(curve.highs)] : [])], into);
  };
  let width = 0;
  new ResizeObserver(() => { if (into.clientWidth !== width) { width = into.clientWidth; draw(); } }).observe(into);
  themeChanged.add(draw);
}
