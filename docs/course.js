// Turns on the theme's extras when the theme is there, and gives code and commands a copy button.
if (typeof DoxygenAwesomeDarkModeToggle !== "undefined") {
  DoxygenAwesomeDarkModeToggle.init();
  DoxygenAwesomeParagraphLink.init();
  DoxygenAwesomeInteractiveToc.init();
}

(function () {
  async function copy(text, button) {
    try {
      await navigator.clipboard.writeText(text);
    } catch (refused) {  // some browsers have no clipboard on pages from the disk
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    button.textContent = "copied";
    setTimeout(() => { button.textContent = "copy"; }, 1500);
  }

  function code(fragment) {
    const lines = [...fragment.querySelectorAll(".line")].map((line) => {
      const plain = line.cloneNode(true);
      plain.querySelectorAll(".lineno, .ttc").forEach((extra) => extra.remove());
      return plain.textContent;
    });
    return lines.join("\n") + "\n";
  }

  document.addEventListener("DOMContentLoaded", () => {
    for (const fragment of document.querySelectorAll(".contents div.fragment")) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "copy";
      button.textContent = "copy";
      button.addEventListener("click", () => copy(code(fragment), button));
      const frame = document.createElement("div");
      frame.className = "listing";
      fragment.replaceWith(frame);
      frame.append(fragment, button);
    }
    for (const command of document.querySelectorAll(".command")) {
      const button = command.querySelector("button");
      button.addEventListener("click",
        () => copy(command.querySelector("code").textContent, button));
    }
  });
  // Folded answers and numbers are part of what is printed.
  window.addEventListener("beforeprint", () => {
    document.querySelectorAll("details").forEach((fold) => { fold.open = true; });
  });
})();
