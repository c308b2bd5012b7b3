import { describe, expect, it } from "vitest";
import { withNumbersOf } from "../../../../../../src/batch/runs/grading/shared/neutralise.js";
import {
  isNamed,
  treatmentOf,
  trustedDirectories,
} from "../../../../../../src/batch/runs/grading/shared/treatment.js";

const places = {
  cwd: "/app",
  artifacts: ["/app", "/app/out", "/srv/tool", "/usr/bin/mended"],
  programs: ["/usr/local/bin", "/usr/bin"],
  homes: ["/root", "/srv/tests"],
  settings: ["/opt/xdg"],
  instruction: "Write queue.py, and a ~/.jupyter for the notebook. Set up /etc/ant/ant.conf.",
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
    "/usr/local/bin/python3.12._pth",
    "/opt/conda/bin/python._pth",
    "/usr/bin/x86_64-linux-gnu-clang.cfg",
    "/usr/bin/pybuilddir.txt",
    "/usr/sbin/policy-rc.d",
    "/var/lib/dpkg/info/libc-bin.postinst",
    "/var/lib/dpkg/diversions",
    "/var/lib/apt/lists/deb.example.org_Packages",
    "/lib/apk/db/scripts.tar.gz",
    "/usr/share/libalpm/hooks/own.hook",
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
    "/usr/local/include/stdio.h",
    "/usr/include/x86_64-linux-gnu/sys/types.h",
    "/usr/lib/gcc/x86_64-linux-gnu/12/include/stddef.h",
    "/usr/lib/gcc/x86_64-linux-gnu/12/crt1.o",
    "/usr/local/lib/libm.a",
    "/usr/local/lib/pkgconfig/zlib.pc",
    "/root/.local/bin/uv",
    "/home/user/.cargo/bin/cargo",
    "/usr/share/maven/lib/maven-core.jar",
    "/opt/java/openjdk/lib/modules",
    "/root/.nvm/nvm.sh",
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
    ["/etc/ca-certificates/update.d/own", "restore-settings"],
    ["/etc/network/if-up.d/own", "restore-hook"],
    ["/etc/kernel/postinst.d/own", "restore-hook"],
    ["/app/pathlib.py", "remove-stand-in"],
    ["/app/attr/__init__.py", "remove-stand-in"],
    ["/app/packaging.cpython-312-x86_64-linux-gnu.so", "remove-stand-in"],
    ["/app/numpy.pyc", "remove-stand-in"],
  ])("%j is a case of its own: %s", (path, treatment) => {
    expect(treatmentOf(path, places)).toBe(treatment);
  });

  it.each([
    "/root/.config/curlrc",
    "/root/.config/go/env",
    "/home/user/.config/anything/at/all",
    "/srv/tests/.config",
    "/opt/xdg/curlrc",
    "/root/.condarc",
    "/root/.tool-versions",
    "/root/.m2/settings.xml",
    "/root/.mavenrc",
    "/root/.gradle/gradle.properties",
    "/root/.ssh/config",
    "/root/.docker/config.json",
    "/root/.julia/config/startup.jl",
    "/root/.ipython/profile_default/startup/own.py",
    "/etc/curlrc",
    "/usr/local/etc/pip.conf",
    "/etc/dpkg/dpkg.cfg.d/own",
    "/etc/debconf.conf",
    "/etc/apk/commit_hooks.d/own",
    "/etc/maven/settings.xml",
    "/etc/java-17-openjdk/security/java.security",
    "/usr/share/maven/conf/settings.xml",
    "/opt/gradle/init.d/own.gradle",
    "/etc/xdg/pip/pip.conf",
    "/etc/ssh/ssh_config.d/own.conf",
  ])("%j is a setting, which is put back unless the agent was asked to change it", (path) => {
    expect(treatmentOf(path, places)).toBe("restore-settings");
    expect(isNamed(path, places)).toBe(false);
  });

  it("what the instruction names is no stand-in and no setting of others", () => {
    expect(treatmentOf("/app/queue.py", places)).toBeNull();
    expect(isNamed("/root/.jupyter/jupyter_notebook_config.py", places)).toBe(true);
    expect(isNamed("/etc/ant/ant.conf", places)).toBe(true);
    expect(isNamed("/etc/ant/other.conf", { ...places, instruction: "Write /etc/ant/ant.conf." })).toBe(
      false,
    );
    expect(isNamed("/root/.m2/settings.xml", { ...places, instruction: "Work in /root." })).toBe(false);
    expect(isNamed("/home/user/.inputrc", { ...places, instruction: "See /home/user/project." })).toBe(false);
  });

  it("hidden files of a home that is the working directory are work, ~/.config is not", () => {
    const atHome = { ...places, cwd: "/root", artifacts: [] };
    expect(treatmentOf("/root/.eslintrc", atHome)).toBeNull();
    expect(treatmentOf("/root/.config/curlrc", atHome)).toBe("restore-settings");
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
    "/app/src/pathlib.py",
    "/app/attr/own.py",
    "/app/.config/curlrc",
    "/root/.bash_history",
    "/root/.cache/uv/archive/own/config.json",
    "/root/.m2/repository/org/own/1.0/own.pom",
    "/root/.cargo/registry/src/own/Cargo.toml",
    "/root/.ssh/authorized_keys",
    "/root/.pyenv/versions/3.12/config.toml",
    "/root/.local/lib/python3.12/site-packages/own.py",
    "/etc/ssh/sshd_config",
    "/etc/mysql/my.cnf",
    "/etc/redis/redis.conf",
    "/etc/init.d/own",
    "/etc/systemd/system/own.d/service",
    "/etc/apk/world",
    "/var/lib/dpkg/status",
    "/usr/share/nginx/html/index.html",
    "/opt/service/server.py",
    "/srv/data/settings.xml",
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
