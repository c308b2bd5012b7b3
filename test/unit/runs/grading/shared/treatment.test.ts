import { describe, expect, it } from "vitest";
import { treatmentOf, trustedDirectories } from "../../../../../src/runs/grading/shared/treatment.js";
import { withNumbersOf } from "../../../../../src/runs/grading/shared/user-database.js";

const places = {
  cwd: "/app",
  artifacts: ["/app", "/app/out", "/srv/tool", "/usr/bin/mended"],
  programs: ["/usr/local/bin", "/usr/bin"],
};

describe("before tests run in the agent's container", () => {
  it.each([
    "/etc/ld.so.preload",
    "/etc/ld.so.conf.d/own.conf",
    "/etc/profile.d/own.sh",
    "/root/.bashrc",
    "/home/a user/.profile",
    "/app/conftest.py",
    "/app/a\nb/conftest.py",
    "/app/deep/sitecustomize/__init__.py",
    "/app/conftest.pyc",
    "/app/.git/hooks/pre-commit",
    "/app/.git/config",
    "/conftest.py",
    "/package.json",
    "/node_modules/left/index.js",
    "/usr/lib/python3.11/json/__init__.py",
    "/usr/lib/python311.zip",
    "/usr/local/lib/python3.12/site-packages/own.pth",
    "/usr/local/lib/python3.12/site-packages/_pytest/runner.py",
    "/usr/lib/python3/dist-packages/x/__pycache__/y.cpython-311.pyc",
    "/etc/nsswitch.conf",
    "/etc/ld-musl-x86_64.path",
    "/usr/lib/ssl/openssl.cnf",
    "/usr/lib/x86_64-linux-gnu/gconv/gconv-modules.d/own.conf",
    "/etc/perl/strict.pm",
    "/usr/local/share/perl/5.36.0/Carp.pm",
    "/usr/lib/gcc/x86_64-linux-gnu/12/specs",
    "/root/.cargo/config.toml",
    "/root/.sqliterc",
    "/app/uv.toml",
    "/app/pytest.py",
    "/app/_pytest/runner.py",
    "/app/.git/modules/a/b/config",
    "/app/.git/worktrees/a/config.worktree",
  ])("%j is put back", (path) => {
    expect(treatmentOf(path, places)).toBe("restore");
  });

  it.each([
    "/usr/local/bin/curl",
    "/usr/bin/new",
    "/etc/alternatives/awk",
    "/usr/lib/x86_64-linux-gnu/libm.so.6",
    "/etc/pam.d/su",
    "/usr/share/perl/5.36/Carp.pm",
    "/usr/local/go/src/testing/testing.go",
  ])("%j is put back if the image has it", (path) => {
    expect(treatmentOf(path, places)).toBe("restore-old");
  });

  it.each([
    ["/usr/lib/git-core/git-submodule", "restore-program"],
    ["/usr/lib/gcc/x86_64-linux-gnu/12/cc1", "restore-program"],
    ["/app/own-1.0.dist-info/entry_points.txt", "refuse-plugin"],
    ["/usr/lib/python3/dist-packages/own.egg-info/entry_points.txt", "refuse-plugin"],
    ["/app/sub/.git", "keep-in-repository"],
    ["/app/.git/commondir", "keep-in-repository"],
    ["/app/.git/modules", "keep-in-repository"],
  ])("%j is a case of its own: %s", (path, treatment) => {
    expect(treatmentOf(path, places)).toBe(treatment);
  });

  it.each([
    "/app/answer.txt",
    "/app/lib/x.so",
    "/app/Makefile",
    "/app/out/conftest.py",
    "/srv/tool/.bashrc",
    "/usr/bin/mended",
    "/etc/nginx/nginx.conf",
    "/opt/tool/bin/run",
    "/usr/local/lib/python3.12/site-packages/numpy/__init__.py",
    "/srv/git/own.git/hooks/post-receive",
    "/home/user/myconftest.py",
    "/app/src/pytest/new.py",
    "/app/.cargo/config.toml",
    "/app/.git/objects/ab/cdef",
    "/app/.git/refs/heads/config",
    "/usr/local/lib/node_modules/jest/bin/jest.js",
  ])("%j stays", (path) => {
    expect(treatmentOf(path, places)).toBeNull();
  });

  it("PATH keeps only absolute directories that are not the agent's", () => {
    const path =
      "/app/bin:/usr/local/bin/:.::bin:/tmp/x:/var/tmp:/usr/bin:/usr/bin:/opt/../app/bin:/application/bin";
    expect(trustedDirectories(path, places)).toEqual(["/usr/local/bin", "/usr/bin", "/application/bin"]);
  });
});

describe("users of the image", () => {
  it("keep their numbers and may have other shells; new ones stay, removed ones return", () => {
    const image =
      "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/:/bin/false\ngone:x:7:7::/:/bin/sh\n";
    const now =
      "nobody:x:0:0::/:/bin/bash\nnobody:x:65534:65534::/:/bin/false\nroot:x:0:0:root:/root:/bin/sh\nnew:x:1000:1000::/home/new:/bin/sh";
    expect(withNumbersOf(image, now)).toBe(
      "nobody:x:65534:65534::/:/bin/bash\nroot:x:0:0:root:/root:/bin/sh\nnew:x:1000:1000::/home/new:/bin/sh\ngone:x:7:7::/:/bin/sh\n",
    );
  });

  it("keep their groups' numbers", () => {
    expect(withNumbersOf("sudo:x:27:\n", "sudo:x:0:user\n")).toBe("sudo:x:27:user\n");
  });
});
