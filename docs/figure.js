// Figures that move. A chapter's figures/NAME.js calls
//
//   lab.figure("NAME", {
//     height: 240,                                     // of 720 units of width
//     controls: [{ key: "step", label: "Step", min: 1, max: 8, value: 1 }],
//     draw(pen, at, data) { ...; return "what is seen, in one sentence"; },
//   });
//
// draw() is called for every position of the controls, with `at.step` and so on, and draws all of
// the picture: pen.rect, line, circle, path and text, each with SVG attributes (text's second
// argument is its words). `data.metrics` and `data.series` are what the chapter's run recorded.
// Classes give the colours: c1 to c6, soft, strong, faint, and outline.
window.lab = window.lab || {};

lab.figure = function (name, figure) {
  const SVG = "http://www.w3.org/2000/svg";
  const place = document.querySelector(`figure[data-figure="${name}"]`);
  const data = JSON.parse(document.querySelector(`script[data-recorded="${name}"]`).textContent);
  const at = {};
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 720 ${figure.height}`);
  svg.setAttribute("class", "moving");
  svg.setAttribute("role", "img");
  const said = document.createElement("p");
  said.className = "said";
  said.setAttribute("aria-live", "polite");

  const pen = {};
  for (const shape of ["rect", "line", "circle", "path", "text"]) {
    pen[shape] = (attributes, words) => {
      const element = document.createElementNS(SVG, shape);
      for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
      if (words !== undefined) element.textContent = words;
      svg.append(element);
      return element;
    };
  }

  function draw() {
    svg.replaceChildren();
    said.textContent = figure.draw(pen, at, data);
    svg.setAttribute("aria-label", `${place.dataset.description} ${said.textContent}`);
  }

  const controls = document.createElement("div");
  controls.className = "controls";
  for (const control of figure.controls) {
    at[control.key] = control.value;
    const label = document.createElement("label");
    const range = document.createElement("input");
    Object.assign(range, { type: "range", min: control.min, max: control.max, step: control.step || 1 });
    range.value = control.value;
    const shown = document.createElement("output");
    shown.textContent = control.value;
    range.addEventListener("input", () => {
      at[control.key] = Number(range.value);
      shown.textContent = range.value;
      draw();
    });
    label.append(`${control.label} `, range, shown);
    controls.append(label);
  }

  // Plays the first control from where it stands, or from its start when it is at its end.
  const play = document.createElement("button");
  const first = controls.querySelector("input");
  let timer = null;
  function set(value) {
    first.value = value;
    first.dispatchEvent(new Event("input"));
  }
  function stop() {
    clearInterval(timer);
    timer = null;
    play.textContent = "Play";
  }
  play.type = "button";
  play.textContent = "Play";
  play.addEventListener("click", () => {
    if (timer) return stop();
    if (first.value === first.max) set(first.min);
    play.textContent = "Stop";
    timer = setInterval(() => {
      set(Number(first.value) + Number(first.step));
      if (first.value === first.max) stop();
    }, 700);
  });
  controls.prepend(play);

  place.querySelector(".stage").append(svg);
  place.querySelector(".stage").after(said, controls);
  draw();
};
