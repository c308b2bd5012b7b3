import { hasWord } from "./settings.js";

/**
 * The name of the module that a path makes importable from the directory in which Python looks first when tests run
 * `python -m pytest`. A directory counts by its `__init__` only: without that, Python goes on looking. Null for other files, and for one that the
 * instruction names.
 */
export function topModuleOf(
  path: string,
  { cwd, instruction }: { cwd: string; instruction: string },
): string | null {
  const start = cwd === "/" ? "/" : `${cwd}/`;
  if (!path.startsWith(start)) return null;
  const [, name, directory] =
    /^([A-Za-z_]\w*)(\/__init__)?(?:\.cpython-[\w-]+|\.abi3|\.pypy[\w-]+)?\.(?:py|pyc|so)$/.exec(
      path.slice(start.length),
    ) ?? [];
  if (name === undefined) return null;
  return hasWord(instruction, directory === undefined ? `${name}.py` : `${name}/__init__.py`) ? null : name;
}

/** Whether Python itself has a module of that name, or pytest consists of it. What else the image has, nobody knows here. */
export function isUsualModule(name: string): boolean {
  return names.has(name);
}

/** Modules of any version of pytest, and those that it needs. */
const ofPytest =
  "pytest pluggy iniconfig packaging attr attrs exceptiongroup tomli pygments py colorama typing_extensions importlib_metadata zipp six more_itertools wcwidth toml atomicwrites xdist pytest_cov pytest_timeout pytest_asyncio pytest_mock pytest_jsonreport pytest_json_ctrf anyio";

/** Modules of Python 3.8 to 3.14, without those that only programs for people import. */
const ofPython =
  "abc aifc annotationlib argparse array ast asynchat asyncio asyncore atexit audioop base64 bdb binascii bisect builtins bz2 cProfile calendar cgi cgitb chunk cmath cmd code codecs codeop collections colorsys compileall compression concurrent configparser contextlib contextvars copy copyreg crypt csv ctypes curses dataclasses datetime dbm decimal difflib dis distutils doctest email encodings enum errno faulthandler fcntl filecmp fileinput fnmatch fractions ftplib functools gc genericpath getopt getpass gettext glob graphlib grp gzip hashlib heapq hmac html http imaplib imghdr imp importlib inspect io ipaddress itertools json keyword linecache locale logging lzma mailbox mailcap marshal math mimetypes mmap modulefinder multiprocessing netrc nis nntplib ntpath nturl2path numbers opcode operator optparse os ossaudiodev pathlib pdb pickle pickletools pipes pkgutil platform plistlib poplib posix posixpath pprint profile pstats pty pwd py_compile pyclbr pydoc pydoc_data pyexpat queue quopri random re readline reprlib resource rlcompleter runpy sched secrets select selectors shelve shlex shutil signal site smtpd smtplib sndhdr socket socketserver spwd sqlite3 sre_compile sre_constants sre_parse ssl stat statistics string stringprep struct subprocess sunau symtable sys sysconfig syslog tabnanny tarfile telnetlib tempfile termios textwrap threading time timeit token tokenize tomllib trace traceback tracemalloc tty types typing unicodedata unittest urllib uu uuid warnings wave weakref webbrowser wsgiref xdrlib xml xmlrpc zipapp zipfile zipimport zlib zoneinfo";

const names: ReadonlySet<string> = new Set(`${ofPytest} ${ofPython}`.split(" "));
