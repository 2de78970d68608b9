/** This repository's own Worker: it serves the project in `manifests/`, as any project serves its own. */
import { createWorker } from './index.ts';
import project from './project.generated.ts';

export default createWorker(project);
export {
  CatalogObject,
  CodeToolHost,
  DirectoryObject,
  OutboundHost,
  RelicObject,
  ScheduleObject,
  SharedFeedObject,
  SessionObject,
  StatusObject,
} from './index.ts';
