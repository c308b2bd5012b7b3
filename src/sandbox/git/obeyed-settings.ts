/**
 * Settings whose value git or a part of it runs, by itself or when it is called, directly or through a shell. From the
 * documentation of git 2.55, of Git LFS 3.7 and of git-annex. Names are in lower case, but for subsections.
 */
export const commandSettings: readonly RegExp[] = [
  /^alias\./,
  /^browser\..*\.(?:cmd|path)$/,
  /^core\.(?:alternaterefscommand|askpass|editor|fsmonitor|gitproxy|pager|sshcommand)$/,
  /^credential\.(?:.*\.)?helper$/,
  /^diff\.(?:.*\.)?(?:command|external|textconv)$/,
  /^(?:difftool|mergetool)\..*\.(?:cmd|path)$/,
  /^filter\..*\.(?:clean|process|smudge)$/,
  /^gc\.recentobjectshook$/,
  /^gpg\.(?:.*\.)?(?:program|defaultkeycommand)$/,
  /^guitool\..*\.cmd$/,
  /^hook\..*\.command$/,
  /^imap\.tunnel$/,
  /^instaweb\.(?:httpd|modulepath)$/,
  /^interactive\.difffilter$/,
  /^man\..*\.(?:cmd|path)$/,
  /^merge\..*\.driver$/,
  /^pager\./,
  /^remote\..*\.(?:receivepack|uploadpack)$/,
  /^sendemail\..*(?:cmd|smtpserver)$/,
  /^sequence\.editor$/,
  /^submodule\..*\.update$/,
  /^svn\.authorsprog$/,
  /^tar\..*\.command$/,
  /^trailer\..*\.(?:cmd|command)$/,
  /^uploadpack\.packobjectshook$/,
  /^lfs\.customtransfer\..*\.(?:args|path)$/,
  /^lfs\.extension\..*\.(?:clean|smudge)$/,
  /^annex\..*-command$/,
  /^remote\..*\.annex-.*(?:command|hook|rsh-program)$/,
];

/** Settings that name a directory with hooks in it: git runs them, or copies them into each new repository. */
export const hookDirectorySettings: readonly RegExp[] = [/^core\.hookspath$/, /^init\.templatedir$/];
