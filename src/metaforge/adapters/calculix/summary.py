"""The sentence that stands alone: verdict, a few numbers with units, and the call that follows."""

from metaforge.adapters.calculix.answers import FeaAnswer, ThermalAnswer


def fea_summary(answer: FeaAnswer) -> str:
    """Return the verdict of `run_fea` in under 120 tokens."""
    parts = [f"{answer.analysis_type.replace('_', ' ')}: "]
    if answer.peak is not None:
        parts.append(_stress(answer))
    if answer.max_displacement_mm is not None:
        parts.append(f"Max displacement {answer.max_displacement_mm:.4g} mm. ")
    if answer.balance_error_ratio is not None and answer.reactions_n is not None:
        reactions = ", ".join(f"{value:.5g}" for value in answer.reactions_n)
        parts.append(
            f"Reactions [{reactions}] N balance the loads within {max(answer.balance_error_ratio, 1e-6):.1g}. "
        )
    if answer.frequencies_hz is not None:
        listed = ", ".join(f"{value:.5g}" for value in answer.frequencies_hz[:5])
        free = f" ({answer.rigid_body_mode_count} rigid-body modes left out)" if answer.rigid_body_mode_count else ""
        parts.append(f"natural frequencies {listed} Hz{free}. ")
    if answer.buckling_factors is not None:
        parts.append(f"buckling at {', '.join(f'{f:.5g}' for f in answer.buckling_factors[:3])} times the load. ")
    if answer.max_temperature_c is not None:
        parts.append(f"temperature {answer.min_temperature_c:.5g} to {answer.max_temperature_c:.5g} deg C. ")
    parts.append(f"{answer.mesh_elements} elements, solved in {answer.solver_time_seconds:.2g} s.")
    return "".join(parts)


def _stress(answer: FeaAnswer) -> str:
    peak = answer.peak
    assert peak is not None
    at = ", ".join(f"{value:.4g}" for value in peak.at_mm)
    text = f"max von Mises {peak.von_mises_mpa:.4g} MPa at [{at}] mm"
    if peak.possibly_singular:
        text += f", possibly singular ({peak.reason})"
        if peak.outside_mpa is not None:
            text += f"; {peak.outside_mpa:.4g} MPa outside that zone"
        else:
            text += "; nothing lies outside that zone: use a smaller element_size_mm"
    factor = answer.factor_of_safety_outside_zone if peak.possibly_singular else answer.factor_of_safety
    if factor is not None:
        text += f"; factor of safety against yield {factor:.3g}"
    return text + ". "


def fea_next_step(answer: FeaAnswer) -> str:
    """Return the call that usually follows."""
    if answer.convergence is None and answer.input_kind == "step" and answer.analysis_type == "static_stress":
        return "calculix.run_fea again with mesh_convergence: true, to see whether the mesh is fine enough"
    return f"calculix.extract_results with frd_path: {answer.frd_file}"


def thermal_summary(answer: ThermalAnswer) -> str:
    """Return the verdict of `run_thermal` in under 120 tokens."""
    at = ", ".join(f"{value:.4g}" for value in answer.max_temperature_at_mm)
    text = (
        f"{answer.analysis_mode.replace('_', ' ')} heat: {answer.min_temperature_c:.5g} to "
        f"{answer.max_temperature_c:.5g} deg C, hottest at [{at}] mm. "
    )
    if answer.heat_in_w is not None and answer.heat_out_w is not None:
        text += f"Heat in {answer.heat_in_w:.4g} W, out {answer.heat_out_w:.4g} W. "
    return text + f"{answer.mesh_elements} elements, solved in {answer.solver_time_seconds:.2g} s."
