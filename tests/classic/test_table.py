"""The table of classic names: each name of refcomp in it exists, and nothing is absent wrongly."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.classic import contrib, nnvm
from refcomp.classic.table import AREAS, FOLDER, ClassicName, by_place, read_areas, resolve

# What users of the classic system look for, by prefix. Each must be in the table.
EXPECTED = {
    "tvm.": """
        var const convert placeholder compute scan extern call_packed decl_buffer reduce_axis
        thread_axis sum min max load_json save_json call_pure_intrin call_intrin call_pure_extern
        call_extern call_llvm_intrin register_intrin_rule if_then_else exp log floor ceil trunc
        round abs isnan create_schedule build lower build_config select tag_scope comm_reducer
        decl_tensor_intrin any all min_value max_value register_func get_global_func cpu gpu opencl
        rocm context nd.array nd.empty module.load target.create hybrid.script ir_builder.create
        rpc.connect autotvm.template autotvm.apply_history_best contrib.graph_runtime.create
        contrib.debugger.debug_runtime.create contrib.cblas.matmul contrib.cc.create_shared
        contrib.sparse.placeholder contrib.random.uniform contrib.sort.argsort
        contrib.util.tempdir contrib.nnpack.convolution_inference contrib.rocblas.matmul
        ir_pass.Simplify ir_pass.PostOrderVisit ir_pass.IRTransform ir_pass.Substitute Range
        schedule.InferBound schedule.Buffer module.enabled TVMError build_module.build
        testing.assert_allclose relay.build relay.* autotvm.* contrib.cudnn.* rpc.LocalSession
    """,
    "topi.": """
        identity negative floor ceil sign trunc round abs isnan exp tanh log sqrt rsqrt sigmoid clip
        cast reinterpret transpose flip strided_slice expand_dims reshape squeeze concatenate split
        take gather_nd full full_like nn.relu nn.leaky_relu nn.prelu nn.dilate nn.pool
        nn.global_pool nn.adaptive_pool nn.upsampling nn.softmax nn.dense nn.batch_matmul
        nn.log_softmax nn.conv2d nn.conv2d_nchw nn.conv2d_hwcn nn.conv2d_nhwc nn.conv2d_NCHWc
        nn.depthwise_conv2d_nchw nn.depthwise_conv2d_nhwc nn.conv2d_transpose_nchw nn.pad nn.flatten
        nn.group_conv2d_nchw nn.deformable_conv2d_nchw nn.fifo_buffer nn.lrn nn.l2_normalize
        nn.scale_shift_nchw nn.scale_shift_nhwc nn.bitserial_conv2d_nchw nn.bitserial_dense
        nn.mirror_pad nn.space_to_depth nn.depth_to_space nn.conv1d nn.conv3d nn.upsampling3d
        max sum min argmax argmin prod all any broadcast_to add subtract multiply divide mod
        floor_divide floor_mod maximum minimum power left_shift right_shift greater less equal
        not_equal greater_equal less_equal logical_and logical_or logical_not arange stack repeat
        tile shape ndarray_size layout_transform image.resize image.crop_and_resize argsort topk
        sequence_mask one_hot where matmul tensordot elemwise_sum expand_like erf cos sin atan
        sparse.csrmv sparse.csrmm sparse.dense vision.non_max_suppression vision.get_valid_counts
        vision.ssd.multibox_prior vision.ssd.multibox_detection vision.ssd.multibox_transform_loc
        vision.rcnn.roi_align_nchw vision.rcnn.roi_pool_nchw vision.rcnn.proposal vision.reorg
        generic.schedule_injective generic.schedule_broadcast generic.schedule_reduce
        generic.schedule_softmax generic.schedule_dense generic.schedule_pool
        generic.schedule_conv2d_nchw generic.schedule_depthwise_conv2d_nchw generic.default_schedule
        x86.schedule_conv2d_nchw cuda.schedule_conv2d_nchw rocm.schedule_conv2d_nchw
    """,
    "nnvm.sym.": """
        dense relu tanh sigmoid exp log sqrt elemwise_add elemwise_sub elemwise_mul elemwise_div
        elemwise_sum flatten concatenate expand_dims squeeze split dropout batch_norm softmax
        log_softmax pad block_grad conv2d conv2d_transpose max_pool2d avg_pool2d global_max_pool2d
        global_avg_pool2d reshape copy negative floor ceil round trunc abs leaky_relu __add_scalar__
        __sub_scalar__ __rsub_scalar__ __mul_scalar__ __div_scalar__ __rdiv_scalar__ __pow_scalar__
        __rpow_scalar__ __lshift_scalar__ __rshift_scalar__ transpose broadcast_to sum min max
        broadcast_add broadcast_sub broadcast_mul broadcast_div clip greater less expand_like
        reshape_like full full_like ones ones_like zeros zeros_like Variable Group load_json
    """,
    "nnvm.": """
        compiler.build compiler.build_config compiler.save_param_dict compiler.load_param_dict
        compiler.optimize frontend.from_onnx frontend.from_mxnet graph.create graph.load_json
        compiler.graph_util.infer_shape compiler.graph_util.gradients testing.mlp testing.resnet
        testing.utils.create_workload name.Prefix top.*
    """,
}


def entries() -> list[ClassicName]:
    return [entry for area in read_areas() for entry in area.names]


def samples() -> dict[str, object]:
    """Return an object of each class whose methods the table lists."""
    A = rc.placeholder((4,), name="A")
    k = rc.reduce_axis((0, 4), name="k")
    total = rc.compute((1,), lambda i: rc.sum(A[k], axis=k), name="T")
    s = rc.create_schedule(total)
    net = rc.sym.relu(rc.sym.Variable("x"))
    graph, lib, _ = nnvm.compiler.build(net, "interp", {"x": (2,)})
    return {
        "Schedule": s,
        "Stage": s[total],
        "NDArray": rc.nd.array(np.ones(4, np.float32)),
        "Device": rc.cpu(),
        "Module": rc.build(s, [A, total], "interp"),
        "Tensor": total,
        "Operation": total.op,
        "IterVar": k,
        "Expr": A[0],
        "Target": rc.as_target("llvm"),
        "LoweredFunc": rc.lower(s, [A, total]),
        "For": rc.lower(s, [A, total]).body,
        "IRBuilder": rc.ir_builder.create(),
        "Buffer": rc.decl_buffer((4,), name="b"),
        "GraphModule": contrib.graph_runtime.create(graph, lib, rc.cpu()),
        "Graph": nnvm.graph.create(net),
    }


SAMPLES = samples()


def test_every_file_of_the_folder_is_read() -> None:
    assert sorted(AREAS) == sorted(path.stem for path in FOLDER.iterdir())


def test_no_name_is_listed_twice() -> None:
    names = [entry.name for entry in entries()]
    assert [name for name in names if names.count(name) > 1] == []


@pytest.mark.parametrize("prefix", EXPECTED)
def test_every_name_that_users_look_for_is_listed(prefix: str) -> None:
    listed = {entry.name for entry in entries()}
    assert [name for name in EXPECTED[prefix].split() if prefix + name not in listed] == []


def test_every_name_of_refcomp_in_the_table_exists() -> None:
    for entry in entries():
        if entry.is_method and entry.target:
            owner, _, method = entry.target.partition(".")
            assert hasattr(SAMPLES[owner], method), entry.name
        elif entry.target:
            assert resolve(entry.target) is not None, entry.name


def test_nothing_that_the_table_calls_absent_is_there() -> None:
    for entry in entries():
        if entry.target:
            continue
        if entry.is_method:
            owner, _, method = entry.name.partition(".")
            assert not hasattr(SAMPLES[owner], method), entry.name
            continue
        place = entry.name.removeprefix("tvm.").replace("nnvm.sym.", "sym.")
        with pytest.raises((AttributeError, ImportError)):
            pytest.fail(f"{entry.name} is {resolve(place)}")


def test_each_name_is_an_alias_or_has_a_note() -> None:
    for entry in entries():
        assert entry.is_alias or entry.note or entry.is_method, entry.name
        assert not (entry.is_alias and entry.note) or entry.is_translated, entry.name
        assert not entry.note or entry.note.endswith("."), entry.name


def test_methods_have_no_place_in_the_module() -> None:
    assert "Schedule.cache_read" not in by_place()
    assert not any(place.startswith("Module.") for place in by_place())
    assert by_place()["nd.from_dlpack"].target == "nd.from_dlpack"
    assert by_place()["topi.nn.relu"].target == "topi.relu"


def test_operators_with_classic_arguments_are_aliases() -> None:
    pool = by_place()["topi.nn.pool"]
    assert (pool.target, pool.is_translated, pool.is_alias) == (
        "classic.operators.pool",
        True,
        True,
    )
    assert not by_place()["topi.nn.relu"].is_translated


def test_resolve_imports_what_is_needed() -> None:
    assert resolve("ir.expr.Var") is type(rc.var("n"))
    with pytest.raises(ModuleNotFoundError):
        resolve("ir.nothing")
