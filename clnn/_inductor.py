"""Switches of ``torch._inductor`` that programs set; see :mod:`clnn._dynamo`."""
from ._dynamo import _switches

__path__ = []
config = _switches("_inductor.config", "triton cpp cuda rocm xpu mtia halide trace cutlass lookup_table aot_inductor aot_inductor_mode test_configs")

_GROUPS = frozenset("""_collective aten_distributed_optimizations aot_inductor aot_inductor_mode auto_chunker autoheuristic_collect autoheuristic_use cpp cuda cutlass
                       eager_numerics halide lookup_table mtia rocm test_configs trace triton xpu""".split())
# Options of ``compile`` that belong to no group: those that are True or False, and the others.
_FLAGS = frozenset("""
    TYPE_CHECKING inplace_padding can_inplace_pad_graph_input enable_auto_functionalized_v2 debug disable_progress verbose_progress fx_graph_cache
    remote_gemm_autotune_cache bundle_triton_into_fx_graph_cache non_blocking_remote_cache_write autotune_local_cache unsafe_skip_cache_dynamic_shape_guards
    cpp_wrapper cpp_wrapper_build_separate fx_wrapper cpp_cache_precompile_headers online_softmax apply_gumbel_max_trick dce static_weight_shapes size_asserts
    nan_asserts runtime_triton_nan_asserts scalar_asserts alignment_asserts pick_loop_orders inplace_buffers allow_buffer_reuse memory_planning use_fast_math
    benchmark_harness epilogue_fusion epilogue_fusion_with_atomic_add prologue_fusion epilogue_fusion_first epilogue_fusion_user_defined_triton_kernel
    pattern_matcher b2b_gemm_pass split_cat_fx_passes efficient_conv_bn_eval_fx_passes is_predispatch group_fusion batch_fusion reorder_for_locality
    dynamic_scale_rblock force_fuse_int_mm_with_mul keep_addmm_fused_for_half_dtypes use_mixed_mm reorder_for_compute_comm_overlap reorder_for_peak_memory
    reorder_for_peak_memory_debug dedup_reduce_scatters runtime_estimations_mms_benchmark use_experimental_benchmarker distributed_max_autotune_gemm
    pipeline_max_autotune_gemm use_torch_profiler_benchmarker max_autotune max_autotune_pointwise max_autotune_gemm incremental_autotune
    max_autotune_report_choices_stats max_autotune_prune_choices_based_on_shared_mem triton_disable_device_detection graph_partition
    max_autotune_allow_flexible_layouts nvgemm_supplement_configs fallback_by_default selective_decompose use_dce use_pre_grad_passes use_joint_graph_passes
    use_post_grad_passes cutedsl_enable_autotuning autotune_fallback_to_aten search_autotune_cache save_args autotune_in_subproc autotune_multi_device
    coordinate_descent_tuning coordinate_descent_check_all_directions run_jit_post_compile_hook layout_optimization force_layout_optimization cache_sdpa_constraint
    keep_output_stride warn_mix_layout delay_realize_cheap_outputs fallback_random align_random_eager fallback_embedding_bag_byte_unpack implicit_fallbacks
    assume_unaligned_fallback_output aggressive_fusion debug_fusion benchmark_fusion loop_ordering_after_fusion loop_reindexing_after_fusion
    loop_index_inversion_in_fusion benchmark_epilogue_fusion force_pointwise_cat comment_origin conv_1x1_as_mm split_reductions deterministic batch_invariant
    benchmark_kernel constant_and_index_propagation always_keep_tensor_constants assert_indirect_indexing do_not_emit_runtime_assertions compute_all_bounds
    combo_kernels benchmark_combo_kernel combo_kernel_foreach_dynamic_shapes combo_kernel_per_subkernel_blocks combo_kernel_autotune_grouping
    combo_kernels_pointwise_only joint_graph_constant_folding debug_index_asserts is_nightly_or_source developer_warnings optimize_scatter_upon_const_tensor
    worker_suppress_logging log_tlparse _fuse_ddp_communication _micro_pipeline_tp partitioned_scatter_enabled quiesce_async_compile_pool use_static_cuda_launcher
    static_launch_user_defined_triton_kernels strict_static_cuda_launcher keep_static_cubin_raw use_fast_triton_launcher use_launch_metadata_schema shape_padding
    comprehensive_padding pad_channels_last pad_dynamic_shapes disable_padding_cpu expand_dimension_for_pointwise_nodes pad_outputs bw_outputs_user_visible
    force_shape_pad permute_fusion profiler_mark_wrapper_call generate_intermediate_hooks debug_ir_traceback _raise_error_for_testing _use_fp64_for_unbacked_floats
    profile_bandwidth profile_bandwidth_with_do_bench_using_profiling disable_cpp_codegen freezing freezing_discard_parameters decompose_mem_bound_mm
    wrap_inductor_compiled_regions assume_aligned_inputs assume_32bit_indexing unsafe_ignore_unsupported_triton_autotune_args check_stack_no_cycles_TESTING_ONLY
    force_disable_cudagraph_TESTING_ONLY enable_linear_binary_folding annotate_training enable_caching_generated_triton_templates enable_autograd_for_aot
    write_are_deterministic_algorithms_enabled emulate_precision_casts emulate_precision_casts_on_saved_tensors""".split())
_OTHERS = frozenset("""
    worker_log_path precompilation_timeout_seconds fx_graph_remote_cache autotune_remote_cache bundled_autotune_remote_cache unsafe_marked_cacheable_functions
    sleep_sec_TESTING_ONLY triton_kernel_default_layout_constraint memory_pool post_grad_custom_pre_pass post_grad_custom_post_pass custom_partitioner_fn
    joint_custom_pre_pass joint_custom_post_pass pre_grad_custom_pass _pre_fusion_custom_pass _post_fusion_custom_pass pre_grad_fusion_options
    post_grad_fusion_options fx_passes_numeric_check mixed_mm_choice reorder_for_compute_comm_overlap_passes reorder_prefetch_limit
    size_threshold_for_succ_based_strategy bucket_all_gathers_fx bucket_all_gathers_fx_bucket_size_determinator bucket_all_gathers_bucket_mode
    bucket_reduce_scatters_fx bucket_reduce_scatters_fx_bucket_size_determinator bucket_reduce_scatters_bucket_mode bucket_all_reduces_fx
    bucket_all_reduces_fx_bucket_size_determinator estimate_op_runtime intra_node_bw inter_node_bw cpu_gpu_bw inductor_default_autotune_warmup
    inductor_default_autotune_rep autotune_num_choices_displayed cudagraph_policy custom_should_partition_ops cudagraph_unsafe_unbacked_ops multi_kernel_hints
    max_autotune_gemm_backends nvgemm_max_profiling_configs _conv_default_backends max_autotune_conv_backends max_autotune_conv_bwd_weight_backends
    max_autotune_conv_bwd_input_backends max_autotune_gemm_search_space max_autotune_flex_search_space pre_grad_pass_timing unbacked_symint_fallback
    max_autotune_subproc_result_timeout_seconds max_autotune_subproc_graceful_timeout_seconds max_autotune_subproc_terminate_timeout_seconds
    collective_benchmark_nruns collective_benchmark_timeout coordinate_descent_search_radius autoheuristic_log_path layout_opt_default realize_reads_threshold
    _realize_opcount_threshold_default realize_opcount_threshold realize_cpu_opcount_threshold _realize_acc_reads_threshold_default realize_acc_reads_threshold
    realize_cpu_acc_reads_threshold realize_acc_reads_size_threshold inductor_choices_class enabled_metric_tables score_fusion_memory_threshold
    max_epilogue_benchmarked_choices max_fusion_size min_overlap_ratio max_fusion_buffer_group_pairwise_attempts max_fusion_unique_io_buffers
    max_complex_pointwise_cat_inputs max_pointwise_cat_inputs unroll_reductions_threshold min_num_split combo_kernels_autotune combo_kernel_allow_mixed_sizes
    combo_kernel_max_num_args combo_kernel_max_num_nodes combo_kernel_peak_memory_increase_gb combo_kernel_peak_memory_pct_threshold combo_kernel_max_distance
    add_pre_grad_passes remove_pre_grad_passes disabled_passes worker_start_method small_memory_access_threshold _fuse_ddp_bucket_size
    _fuse_ddp_communication_passes partitioned_scatter_min_partitions partitioned_scatter_max_partitions partitioned_scatter_memory_budget compile_threads
    quiesce_async_compile_time global_cache_dir kernel_name_max_ops padding_alignment_bytes padding_stride_threshold _profile_var profile_bandwidth_regex
    profile_bandwidth_output autotune_lookup_table file_lock_timeout compile_worker_wait_timeout torchinductor_worker_logpath cpu_backend cuda_backend tpu_backend
    xpu_backend _save_config_ignore _cache_config_ignore_prefix _cache_config_factory_keys external_matmul""".split())


def check_options(options):
    """Refuse what PyTorch has no option for, and what is no flag where it wants one. All others are accepted: a recorder has no use for them."""
    for key, value in options.items():
        name = key.replace("-", "_")
        if name in _FLAGS:
            if not isinstance(value, bool):
                raise RuntimeError(f"Unexpected type of attr {key}, got {type(value).__name__} should be bool")
        elif name not in _OTHERS and not (name.partition(".")[0] in _GROUPS and name.partition(".")[2]):
            raise RuntimeError(f"Unexpected optimization option {key}, known options are {sorted(_FLAGS | _OTHERS)}")
