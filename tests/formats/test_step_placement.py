"""Whether a STEP file moves its parts."""

import pytest

from metaforge.formats.step_placement import has_placement

FRAME = """
#1=CARTESIAN_POINT('',(0.,0.,0.));
#2=DIRECTION('',(0.,0.,1.));
#3=DIRECTION('',(1.,0.,0.));
#10=AXIS2_PLACEMENT_3D('',#1,#2,#3);
"""


@pytest.mark.parametrize(
    ("second", "moves"),
    [
        ("#4=CARTESIAN_POINT('',(0.,0.,0.));#20=AXIS2_PLACEMENT_3D('',#4,#2,#3);", False),
        ("#4=CARTESIAN_POINT('',(0.,0.,0.));#20=AXIS2_PLACEMENT_3D('',#4,$,$);", False),
        ("#4=CARTESIAN_POINT('',(5.,0.,0.));#20=AXIS2_PLACEMENT_3D('',#4,#2,#3);", True),
        ("#4=CARTESIAN_POINT('',(0.,0.,0.));#20=AXIS2_PLACEMENT_3D('turned',#4,#3,#2);", True),
        (
            "#4 = CARTESIAN_POINT ( 'origin' , ( 0. , 1.E-3 , 0. ) ) ;#20 = AXIS2_PLACEMENT_3D ( '' , #4 , #2 , #3 ) ;",
            True,
        ),
    ],
)
def test_a_transform_between_two_frames_moves_only_where_they_differ(second: str, moves: bool) -> None:
    assert has_placement(FRAME + second + "#30=ITEM_DEFINED_TRANSFORMATION('','',#10,#20);") is moves


def test_a_mapped_item_moves_from_its_maps_origin_to_its_target() -> None:
    text = (
        FRAME + "#4=CARTESIAN_POINT('',(0.,7.,0.));#20=AXIS2_PLACEMENT_3D('',#4,#2,#3);#40=REPRESENTATION_MAP(#10,#50);"
    )
    assert has_placement(text + "#41=MAPPED_ITEM('',#40,#20);")
    assert not has_placement(text + "#41=MAPPED_ITEM('',#40,#10);")


def test_a_part_without_transforms_is_where_it_is() -> None:
    assert not has_placement(FRAME)


def test_a_dangling_reference_counts_as_moved_rather_than_crash() -> None:
    assert has_placement(FRAME + "#30=ITEM_DEFINED_TRANSFORMATION('','',#10,#99);")
