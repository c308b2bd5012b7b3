import { BrigError } from "../../errors.js";

/** Error: `usage.invalid` for what cannot be the name or the id of an image. */
export function checkImageName(ref: string): void {
  const isName = /^[\w][\w.:@/-]*$/.test(ref) && !ref.includes("..") && !ref.includes("//");
  // Before the first slash may be a host.
  const path = ref.replace(/[:@][^/]*$/, "").replace(/^[^/]*\//, "");
  if (isName && path === path.toLowerCase()) return;
  throw new BrigError(`${JSON.stringify(ref)} is not the name of an image`, {
    code: "usage.invalid",
    hint: isName
      ? "names of images have no capital letters, except in a tag"
      : "write it as NAME, NAME:TAG or NAME@sha256:DIGEST",
  });
}
