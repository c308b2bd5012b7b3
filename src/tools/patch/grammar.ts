import { ADD, ANCHOR, BEGIN, DELETE, END, END_OF_FILE, MOVE, UPDATE } from "./format/patch.js";

/**
 * The format of a patch as a Lark grammar, which the endpoint enforces. It is stricter than the parser and
 * never looser: an update has changes, and so has every anchor.
 */
export const patchGrammar = `start: begin hunk+ end
begin: "${BEGIN}" LF
end: "${END}" LF?

hunk: add | delete | update
add: "${ADD}" path LF added+
delete: "${DELETE}" path LF
update: "${UPDATE}" path LF move? first_chunk chunk* end_of_file?
move: "${MOVE}" path LF

first_chunk: anchor? change+
chunk: anchor change+
anchor: ("${ANCHOR}" | "${ANCHOR} " /(.+)/) LF
change: ("+" | "-" | " ") /(.*)/ LF
added: "+" /(.*)/ LF
end_of_file: "${END_OF_FILE}" LF

path: /(.+)/

%import common.LF
`;
