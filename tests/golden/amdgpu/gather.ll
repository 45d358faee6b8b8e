target datalayout = "e-p:64:64-p1:64:64-p2:32:32-p3:32:32-p4:64:64-p5:32:32-p6:32:32-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128-v192:256-v256:256-v512:512-v1024:1024-v2048:2048-n32:64-S32-A5-G1-ni:7"
target triple = "amdgcn-amd-amdhsa"

define amdgpu_kernel void @gather(ptr addrspace(1) noalias readonly align 4 %A, ptr addrspace(1) noalias readonly align 4 %I, ptr addrspace(1) noalias writeonly align 4 %B, i64 %rows, i64 %n, i64 %groups) #0 "amdgpu-flat-work-group-size"="32,32" "amdgpu-waves-per-eu"="1" !reqd_work_group_size !{i32 32, i32 1, i32 1} {
entry:
  %g.id = call i32 @llvm.amdgcn.workgroup.id.x(), !range !{i32 0, i32 2147483647}
  %g = zext i32 %g.id to i64
  %t.id = call i32 @llvm.amdgcn.workitem.id.x(), !range !{i32 0, i32 32}
  %t = zext i32 %t.id to i64
  %.1 = mul i64 %g, 32
  %.2 = add i64 %.1, %t
  %.3 = mul i64 %n, 8
  %.4 = icmp slt i64 %.2, %.3
  br i1 %.4, label %if.5.then, label %if.5.end
if.5.then:
  %.6 = ashr i64 %.2, 3
  %.7.at = getelementptr i32, ptr addrspace(1) %I, i64 %.6
  %.7 = load i32, ptr addrspace(1) %.7.at, align 4
  %.8 = sext i32 %.7 to i64
  %.9 = icmp sle i64 0, %.8
  %.10 = icmp slt i64 %.8, %rows
  %.11 = and i1 %.9, %.10
  br i1 %.11, label %choose.12.then, label %choose.12.else
choose.12.then:
  %.13 = mul i64 %.8, 8
  %.14 = and i64 %.2, 7
  %.15 = add i64 %.13, %.14
  %.16.at = getelementptr float, ptr addrspace(1) %A, i64 %.15
  %.16 = load float, ptr addrspace(1) %.16.at, align 4
  br label %choose.12.then.end
choose.12.then.end:
  br label %choose.12.end
choose.12.else:
  br label %choose.12.else.end
choose.12.else.end:
  br label %choose.12.end
choose.12.end:
  %.17 = phi float [ %.16, %choose.12.then.end ], [ 0x0000000000000000, %choose.12.else.end ]
  %.18.at = getelementptr float, ptr addrspace(1) %B, i64 %.2
  store float %.17, ptr addrspace(1) %.18.at, align 4
  br label %if.5.end
if.5.end:
  ret void
}

declare i32 @llvm.amdgcn.workgroup.id.x()
declare i32 @llvm.amdgcn.workitem.id.x()

attributes #0 = { nounwind "uniform-work-group-size"="true" "amdgpu-implicitarg-num-bytes"="0" "amdgpu-no-implicitarg-ptr" "amdgpu-no-dispatch-ptr" "amdgpu-no-dispatch-id" "amdgpu-no-queue-ptr" "amdgpu-no-hostcall-ptr" "amdgpu-no-multigrid-sync-arg" "amdgpu-no-heap-ptr" "amdgpu-no-default-queue" "amdgpu-no-completion-action" }
attributes #1 = { nounwind readnone willreturn }
