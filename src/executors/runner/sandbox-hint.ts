/** Explains failures of scripts that expect what the sandbox does not have (R2): a network, packages, files. */

const HINTS: readonly { readonly when: RegExp; readonly hint: string }[] = [
  {
    when: /name resolution|Name or service not known|Network is unreachable|Could not resolve host|\b(?:ENETUNREACH|EAI_AGAIN|ENOTFOUND)\b/,
    hint: 'a script has no network here; use a tool of type http, or web_fetch',
  },
  {
    when: /No module named|Cannot find (?:module|package)/,
    hint: 'a script has only the library of its interpreter; packages need implementation {type: container, build: {…, requirements}}, and files beside it "files"',
  },
  {
    when: /No such file or directory|not a git repository|command not found|\bENOENT\b/,
    hint: 'a script starts in an empty folder, with the programs of its sandbox and no file of its manifest but "files"',
  },
];

/** @returns the explanation, in parentheses after a space; empty if there is none */
export function sandboxHint(message: string): string {
  const found = HINTS.find(({ when }) => when.test(message));
  return found === undefined ? '' : ` (${found.hint})`;
}
