import { BrigError } from "../errors.js";

/** `--experimental-config-file`, with or without its value, and `--experimental-default-config-file`. */
const SETTINGS_OF_NODE = /^--experimental-(?:config-file(?==|$)|default-config-file)/;

/**
 * Node 22 and newer obey these options wherever they are among a program's arguments, even after the "--" with which
 * brig is started. By now Node has read that file, and may have changed the arguments: what was asked for is not known.
 */
export function refuseOptionsOfNode(
  argv: readonly string[],
  { node }: { node: string } = process.versions,
): void {
  if (Number.parseInt(node, 10) < 22) return;
  const [option] = argv.flatMap((word) => SETTINGS_OF_NODE.exec(word)?.[0] ?? []);
  if (option === undefined) return;
  throw new BrigError(
    `Node ${node}, which runs brig, obeys ${option} itself, wherever it is among brig's arguments`,
    {
      code: "usage.invalid",
      hint: `write the command as one text, in which Node does not look for it: brig exec -- sh -c "node ${option} …"`,
    },
  );
}
