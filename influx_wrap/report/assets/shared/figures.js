// Figures by Bokeh in the page's own colours, light or dark, and by nothing but its own data.
// A colour is the name of one of the page's variables ("mark" is --mark), so that all figures
// change with the page.

Bokeh.logger.set_level("warn");

// Lightness alone tells values apart, for every kind of colour vision: "value" for what a thing
// is, "error" for how wrong it is (as in the pictures that runs write).
const RAMPS = {
  value: ["#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74", "#c3b369",
    "#e1cc55", "#fee838"],
  error: ["#ffffe5", "#fff7bc", "#fee391", "#fec44f", "#fe9929", "#ec7014", "#cc4c02", "#993404",
    "#662506"],
};

const rgbOf = (hex) => [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16));

// 256 colours of a ramp.
function ramp(name) {
  const stops = RAMPS[name].map(rgbOf);
  return Array.from({ length: 256 }, (_, k) => {
    const at = k / 255 * (stops.length - 1), low = Math.min(Math.floor(at), stops.length - 2);
    const mixed = stops[low].map((c, j) => Math.round(c + (at - low) * (stops[low + 1][j] - c)));
    return "#" + mixed.map((c) => c.toString(16).padStart(2, "0")).join("");
  });
}

// The colour of a share from 0 to 1 of a ramp's 256.
function shade(colours, share) { return colours[Math.round(255 * clamp(share, 0, 1))]; }

function cssColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

// Numbers row by row, from the bottom up, as the column "image" of a source wants them.
function raster(values, rows, columns) {
  const { ndarray } = Bokeh.require("core/util/ndarray");
  return [ndarray(Float64Array.from(values), { dtype: "float64", shape: [rows, columns] })];
}

// Columns of a source: none yet, as glyphs take them by the same names, of points [x, y], and of
// lines of points; and a line's dashes as Bokeh wants them.
const noRows = (...names) => Object.fromEntries(names.map((name) => [name, []]));
const fields = (...names) => Object.fromEntries(names.map((name) => [name, { field: name }]));
const xyOf = (points) => ({ x: points.map(([x]) => x), y: points.map(([, y]) => y) });
const xysOf = (lines) => ({ xs: lines.map((line) => xyOf(line).x),
  ys: lines.map((line) => xyOf(line).y) });
const dashes = (...lengths) => ({ line_dash: { value: lengths } });

const charts = new Set();

// One figure. x and y: {label, range: [from, to], flipped, log, ticks: [[at, text]]}. "aspect"
// (width / height) takes the place of "height" where the figure shows the picture. "label" is what
// a screen reader says, "hover" Bokeh's tooltips.
class Chart {
  constructor(element, { label, title = "", x, y, height, aspect, hover }) {
    this.element = element;
    this.looks = [];
    element.classList.add("figure");
    element.setAttribute("role", "img");
    this.describe(label);
    this.figure = new Bokeh.Plotting.figure({
      title, toolbar_location: null, tools: [], min_width: 120,
      ...(aspect ? { aspect_ratio: aspect, sizing_mode: "scale_width" }
        : { height, sizing_mode: "stretch_width" }),
      x_axis_type: x.log ? "log" : "auto", y_axis_type: y.log ? "log" : "auto",
      x_range: axisRange(x), y_range: axisRange(y),
    });
    this.axis("x", { label: x.label ?? "", ticks: x.ticks });
    this.axis("y", { label: y.label ?? "", ticks: y.ticks });
    if (hover) this.figure.add_tools(new Bokeh.HoverTool({ tooltips: hover }));
    this.paint();
    charts.add(this);
    // The page's own elements have the keys: Bokeh's would be a stop without a name among them.
    this.shown = Bokeh.Plotting.show(this.figure, element).then((view) => {
      this.view = view;
      view.canvas_view?.events_el?.removeAttribute("tabindex");
    });
  }

  // Another range, other ticks or another label for the axis "x" or "y" of a figure that is there.
  axis(which, { range, ticks, label }) {
    const { [`${which}axes`]: [axis], [`${which}grids`]: [grid] } = this.figure;
    if (range) this.figure[`${which}_range`].setv({ start: range[0], end: range[1] });
    if (label !== undefined) axis.axis_label = label;
    if (ticks) {
      axis.ticker = new Bokeh.FixedTicker({ ticks: ticks.map(([at]) => at) });
      axis.major_label_overrides = new Map(ticks);
      grid.ticker = axis.ticker;
    }
  }

  describe(text) { this.element.setAttribute("aria-label", text); }

  source(columns) { return new Bokeh.ColumnDataSource({ data: columns }); }

  empty(...names) { return this.source(noRows(...names)); }

  // A glyph of Bokeh's ("line", "scatter", "segment", "patches", "rect", "image", ...) with its
  // own properties; "look" names the page's colours: {line, fill, text}.
  add(kind, properties, look = {}) {
    const colours = Object.entries(look).map(([part, name]) => [`${part}_color`, name]);
    const painted = colours.map(([property, name]) => [property, cssColour(name)]);
    const renderer = this.figure[kind]({ ...properties, ...Object.fromEntries(painted) });
    this.looks.push([renderer.glyph, colours]);
    return renderer;
  }

  // A source's "image", a raster, in colours; NaN is left empty. x, y, dw and dh are its corner
  // and its size; low and high follow the numbers if they are not given.
  image(source, palette, { x, y, dw, dh, low, high, log = false }) {
    const Mapper = log ? Bokeh.LogColorMapper : Bokeh.LinearColorMapper;
    const mapper = new Mapper({ palette: ramp(palette), low, high, nan_color: "transparent" });
    const renderer = this.figure.image({
      ...fields("image"), x, y, dw, dh, color_mapper: mapper, source,
    });
    return { renderer, mapper };
  }

  colourBar(mapper, title = "") {
    const bar = new Bokeh.ColorBar({ color_mapper: mapper, width: 10, padding: 6, title,
      title_text_font_style: "normal", background_fill_color: null, border_line_color: null, bar_line_color: null });
    this.figure.add_layout(bar, "right");
    this.looks.push([bar, [["major_label_text_color", "quiet"], ["title_text_color", "quiet"],
      ["major_tick_line_color", "quiet"]]]);
    this.paint();
  }

  // What to do at "tap", "press" or "mousemove": hears x and y of the axes.
  on(event, act) { this.figure.on_event(event, ({ x, y }) => act(x, y)); }

  paint() {
    const [ink, quiet, axis] = ["ink", "quiet", "axis"].map(cssColour);
    const font = "system-ui, sans-serif";
    const { figure } = this;
    figure.setv({ background_fill_color: null, border_fill_color: null, outline_line_color: axis });
    figure.title.setv({ text_color: ink, text_font: font, text_font_size: "13px",
      text_font_style: "bold" });
    for (const one of [...figure.xaxes, ...figure.yaxes]) {
      one.setv({
        axis_label_text_color: quiet, axis_label_text_font: font, axis_label_text_font_size: "12px",
        axis_label_text_font_style: "normal", major_label_text_color: quiet,
        major_label_text_font: font, major_label_text_font_size: "11px", axis_line_color: axis,
        major_tick_line_color: axis, minor_tick_line_color: null,
      });
    }
    for (const grid of [...figure.xgrids, ...figure.ygrids]) {
      grid.setv({ grid_line_color: axis, grid_line_dash: [1, 4] });
    }
    for (const [model, colours] of this.looks) {
      for (const [property, name] of colours) model.setv({ [property]: cssColour(name) });
    }
  }

  // Bokeh paints when the browser next draws, which is too late for paper.
  paintNow() {
    for (const part of this.view?.computed_renderer_views ?? []) part.set_visuals?.();
    this.view?.paint();
  }

  remove() {
    charts.delete(this);
    // Bokeh cannot let go of a document that it is still drawing, and keeps all others for ever.
    this.shown.then(() => {
      const { document: drawn } = this.figure;
      drawn.views_manager.clear();
      Bokeh.documents.splice(Bokeh.documents.indexOf(drawn), 1);
    });
  }
}

function axisRange({ range, flipped }) {
  const [start, end] = flipped ? [range[1], range[0]] : range;
  return new Bokeh.Range1d({ start, end });
}

function paintCharts() { for (const chart of charts) chart.paint(); }

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paintCharts);

// Paper is light, whatever the screen is, and as wide as it is: a figure keeps the pixels that it
// has, drawn at once in the colours of paper, and is made smaller where it would be cut.
const PAPER_WIDTH_PX = 660;
for (const [event, isPrinting] of [["beforeprint", true], ["afterprint", false]]) {
  addEventListener(event, () => {
    document.documentElement.classList.toggle("printing", isPrinting);
    for (const chart of charts) {
      const { element } = chart;
      const beside = element.closest(".maps") ? 3 : element.closest(".figures") ? 2 : 1;
      const room = PAPER_WIDTH_PX / beside - (beside > 1 ? 14 : 0);
      element.style.zoom = isPrinting ? Math.min(1, room / (element.clientWidth || room)) : "";
    }
    paintCharts();
    if (isPrinting) for (const chart of charts) chart.paintNow();
  });
}
