// A kept title as a folder of files, written through the browser where it can write folders.
import { bytes, shownText, toast } from "./dom.mjs";
import { api, root, target } from "./api.mjs";

/** Fetches a file's ranges, or all of it, into a file of the folder. */
async function write(folder, file) {
  const handle = await folder.getFileHandle(file.name, { create: true });
  const output = await handle.createWritable();
  if (file.text !== null && file.text !== undefined) {
    await output.write(file.text);
    return output.close();
  }
  const ranges = file.ranges.length ? file.ranges : [[0, null]];
  try {
    for (const [start, end] of ranges) {
      const answer = await fetch(new URL(file.source.replace(/^\//, ""), root), {
        headers: end === null ? {} : { Range: `bytes=${start}-${end - 1}` }, credentials: "same-origin", redirect: "error",
      });
      if (!answer.ok) throw new Error(`${file.name}: status ${answer.status}`);
      await output.seek(start);
      const reader = answer.body.getReader();
      for (let part = await reader.read(); !part.done; part = await reader.read()) await output.write(part.value);
    }
  } catch (error) {
    await output.abort();
    throw error;
  }
  return output.close();
}

/** Asks for a folder and writes a title into it; names the command where the browser cannot. */
export async function exported(title) {
  if (!window.showDirectoryPicker) {
    return shownText("This browser cannot write folders. This command writes the title as one file, or as a folder if the name has no extension:",
      `sluice export ${title.id} title.mp4`);
  }
  const plan = await api(target("api/export", { title: title.id }));
  let folder;
  try {
    folder = await window.showDirectoryPicker({ mode: "readwrite" });
  } catch (error) {
    if (error.name === "AbortError") return;
    throw error;
  }
  for await (const name of folder.keys()) throw new Error(`The folder is not empty: ${name} is in it.`);
  toast(`Exporting ${plan.files.length} files.`);
  for (const [index, file] of plan.files.entries()) {
    await write(folder, file);
    if (index % 20 === 19) toast(`${index + 1} of ${plan.files.length} files are written.`);
  }
  toast(`“${plan.name}” is exported: ${plan.files.length} files, ${bytes(title.bytes)} kept; play ${plan.entry}.`);
}
