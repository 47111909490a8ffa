// The bundle of the 3-D view: the <model-viewer> element, with nothing fetched from elsewhere.
import {ModelViewerElement} from '@google/model-viewer';

// Decoders of compressed models would come from other hosts; ours are plain, and the pages' policy refuses others.
ModelViewerElement.dracoDecoderLocation = '/static/';
ModelViewerElement.ktx2TranscoderLocation = '/static/';
