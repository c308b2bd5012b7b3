import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { execa } from "execa";

/** The files of a certificate and of its key. */
export interface CertificateFiles {
  cert: string;
  key: string;
}

/** Makes certificates with openssl, as operators do, in files of a directory. */
export class Authority implements CertificateFiles {
  readonly cert: string;
  readonly key: string;
  readonly #directory: string;

  private constructor(directory: string, name: string) {
    this.#directory = directory;
    this.cert = join(directory, `${name}.pem`);
    this.key = join(directory, `${name}-key.pem`);
  }

  static async make(directory: string, name = "authority"): Promise<Authority> {
    const authority = new Authority(directory, name);
    await openssl([
      ...["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"],
      ...["-subj", `/CN=${name}`, "-keyout", authority.key, "-out", authority.cert],
    ]);
    return authority;
  }

  /** A certificate for these names, in the form of openssl: `DNS:brig.test,IP:127.0.0.1`. With 0 days it is over within a second. */
  async sign(
    name: string,
    { names, days = 1 }: { names?: string; days?: number } = {},
  ): Promise<CertificateFiles> {
    const file = (end: string) => join(this.#directory, `${name}${end}`);
    const [cert, key, request, extensions] = [
      ...[file(".pem"), file("-key.pem"), file(".csr"), file(".ext")],
    ] as const;
    await openssl([
      ...["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"],
      ...["-subj", `/CN=${name}`, "-keyout", `${key}`, "-out", `${request}`],
    ]);
    await writeFile(
      `${extensions}`,
      names === undefined ? "basicConstraints=CA:FALSE" : `subjectAltName=${names}`,
    );
    await openssl([
      ...["x509", "-req", "-in", `${request}`, "-CA", this.cert, "-CAkey", this.key, "-CAcreateserial"],
      ...["-days", `${days}`, "-extfile", `${extensions}`, "-out", `${cert}`],
    ]);
    return { cert: `${cert}`, key: `${key}` };
  }
}

async function openssl(args: string[]): Promise<void> {
  await execa("openssl", args);
}
