"use strict";
// What is packed in the page is unpacked, and a <button data-save="ID" data-name="…"> saves it as a
// file; data-save="png" saves the chart beside the button.

const unpack = async (element) => {
  const bytes = Uint8Array.from(atob(element.textContent), (char) => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
};

{
  const SCALE = 3; // pixels of a picture for each of the chart

  const save = (blob, name) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  };

  const draw = async (svg) => {
    const { width, height } = svg.viewBox.baseVal;
    const shown = getComputedStyle(svg.parentNode);
    const copy = svg.cloneNode(true);
    copy.setAttribute("width", width * SCALE);
    copy.setAttribute("height", height * SCALE);
    copy.style.color = shown.color; // a picture knows nothing of the page's colours
    const picture = new Image();
    const text = new XMLSerializer().serializeToString(copy);
    picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
    await picture.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [width * SCALE, height * SCALE];
    const pen = canvas.getContext("2d");
    pen.fillStyle = getComputedStyle(document.body).backgroundColor;
    pen.fillRect(0, 0, canvas.width, canvas.height);
    pen.drawImage(picture, 0, 0);
    return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
  };

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-save]");
    if (!button) return;
    const { save: what, name, type } = button.dataset;
    if (what === "png") save(await draw(button.closest("figure").querySelector(":scope > svg")), name);
    else save(new Blob([await unpack(document.getElementById(what))], { type }), name);
  });
}
