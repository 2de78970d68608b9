/** The Worker. It serves the manifests and tools of this project, which `cortex build` collects. */
import { createWorker } from 'cortex-edge';
import project from './project.generated.ts';

export default createWorker(project);
export {
  CatalogObject,
  CodeToolHost,
  DirectoryObject,
  OutboundHost,
  RelicObject,
  ScheduleObject,
  SessionObject,
  StatusObject,
  SharedFeedObject,
} from 'cortex-edge';
