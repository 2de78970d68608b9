/** Opens a page in the user's browser. */
import open from 'open';

/** @param failed is told why no browser was opened */
export async function openBrowser(url: string, failed: (line: string) => void): Promise<void> {
  const tell = (why: string): void => failed(`Could not open a browser (${why}). Open ${url}/ yourself.`);
  try {
    const browser = await open(`${url}/`);
    browser.once('error', ({ message }) => tell(message));
    browser.once('exit', (code) => {
      if (code !== 0 && code !== null) tell(`the launcher ended with ${code}`);
    });
  } catch (fault) {
    tell(fault instanceof Error ? fault.message : String(fault));
  }
}
