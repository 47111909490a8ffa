"""Which request does what."""

from collections.abc import Callable
from typing import Any

from . import (
    assembly,
    describing,
    dressing,
    exchange,
    features,
    generators,
    measuring,
    parametric,
    scripting,
    sketches,
    solids,
    variables,
)
from .document import Document
from .edits import Edit

READS: dict[str, Callable[[Document, dict[str, Any]], dict[str, Any]]] = {
    "describe_session": describing.describe_session,
    "describe_model": describing.describe_model,
    "measure": lambda document, given: measuring.measure(document, given["obj_id"]),
    "named_faces": dressing.named_faces,
    "list_joints": assembly.list_joints,
    "try_blend": dressing.try_blend,
    "tessellate": exchange.tessellate,
    "export_step": exchange.export_step,
    "measure_file": exchange.measure_file,
    "write_shape": exchange.write_shape,
}

EDITS: dict[str, Callable[[Edit, dict[str, Any]], None]] = {
    "create_primitive": solids.create_primitive,
    "create_body": solids.create_body,
    "boolean": solids.boolean,
    "transform": solids.transform,
    "create_sketch": sketches.create_sketch,
    "pad_sketch": features.pad_sketch,
    "pocket_sketch": features.pocket_sketch,
    "revolve_sketch": features.revolve_sketch,
    "loft_sketches": features.loft_sketches,
    "sweep_sketch": features.sweep_sketch,
    "linear_pattern": features.linear_pattern,
    "polar_pattern": features.polar_pattern,
    "mirror_feature": features.mirror_feature,
    "fillet": dressing.fillet,
    "chamfer": dressing.chamfer,
    "shell_solid": dressing.shell_solid,
    "create_assembly": assembly.create_assembly,
    "add_part": assembly.add_part,
    "add_joint": assembly.add_joint,
    "create_variable_set": variables.create_variable_set,
    "set_expression": variables.set_expression,
    "execute_code": scripting.execute_code,
    "import_step": exchange.import_step,
    "import_brep": exchange.import_brep,
    "create_parametric": parametric.create_parametric,
    "enclosure": generators.enclosure,
    "fastener_hole": generators.fastener_hole,
    "thread_insert": generators.thread_insert,
    "lattice": generators.lattice,
    "gear": generators.gear,
    "profile_part": generators.profile_part,
    "ic_package": generators.ic_package,
}
