/** The deploy button of Cloudflare: a link that copies a public repository, and deploys the copy. */

const BUTTON = 'https://deploy.workers.cloudflare.com';

/**
 * @param remote the address of the project's git remote, as git prints it
 * @returns Markdown for the project's README
 * @throws Error for an address that the service cannot read
 */
export function deployButton(remote: string): string {
  const [, host, path] =
    /^(?:https:\/\/(?:[^@/]*@)?|git@|ssh:\/\/git@)(github\.com|gitlab\.com)[/:](.+?)(?:\.git)?\/?$/.exec(
      remote.trim(),
    ) ?? [];
  if (host === undefined || path === undefined) {
    throw new Error(
      `the button needs a public repository on github.com or gitlab.com; the remote "origin" is ${remote.trim() || 'not set'}`,
    );
  }
  const url = encodeURI(`https://${host}/${path}`);
  return `[![Deploy to Cloudflare](${BUTTON}/button)](${BUTTON}/?url=${url})`;
}
