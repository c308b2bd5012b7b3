import { isIPv4 } from "node:net";

/** The 4 or 16 bytes of an address in a valid spelling. */
export function addressBytes(address: string): Uint8Array<ArrayBuffer> {
  if (isIPv4(address)) return Uint8Array.from(address.split("."), Number);
  // A URL writes the groups in hexadecimal, also those that were written as an IPv4 address.
  const [head = "", tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split("::");
  const groups = (text: string) =>
    text === "" ? [] : text.split(":").map((group) => Number.parseInt(group, 16));
  const before = groups(head);
  const after = groups(tail ?? "");
  const all = [...before, ...new Array<number>(8 - before.length - after.length).fill(0), ...after];
  return Uint8Array.from(all.flatMap((group) => [group >> 8, group & 255]));
}
