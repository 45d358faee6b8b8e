target datalayout = "e-p:64:64-p1:64:64-p2:32:32-p3:32:32-p4:64:64-p5:32:32-p6:32:32-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128-v192:256-v256:256-v512:512-v1024:1024-v2048:2048-n32:64-S32-A5-G1-ni:7"
target triple = "amdgcn-amd-amdhsa"

define amdgpu_kernel void @vector_add(ptr addrspace(1) noalias readonly align 4 %A, ptr addrspace(1) noalias readonly align 4 %B, ptr addrspace(1) noalias writeonly align 4 %C, i64 %n, i64 %groups) #0 "amdgpu-flat-work-group-size"="64,64" "amdgpu-waves-per-eu"="1" !reqd_work_group_size !{i32 64, i32 1, i32 1} {
entry:
  %bx.id = call i32 @llvm.amdgcn.workgroup.id.x(), !range !{i32 0, i32 2147483647}
  %bx = zext i32 %bx.id to i64
  %tx.id = call i32 @llvm.amdgcn.workitem.id.x(), !range !{i32 0, i32 64}
  %tx = zext i32 %tx.id to i64
  %.1 = mul i64 %bx, 64
  %.2 = add i64 %.1, %tx
  %.3 = icmp slt i64 %.2, %n
  br i1 %.3, label %if.4.then, label %if.4.end
if.4.then:
  %.5 = mul i64 %bx, 64
  %.6 = add i64 %.5, %tx
  %.7.at = getelementptr float, ptr addrspace(1) %A, i64 %.6
  %.7 = load float, ptr addrspace(1) %.7.at, align 4
  %.8 = mul i64 %bx, 64
  %.9 = add i64 %.8, %tx
  %.10.at = getelementptr float, ptr addrspace(1) %B, i64 %.9
  %.10 = load float, ptr addrspace(1) %.10.at, align 4
  %.11 = fadd float %.7, %.10
  %.12 = mul i64 %bx, 64
  %.13 = add i64 %.12, %tx
  %.14.at = getelementptr float, ptr addrspace(1) %C, i64 %.13
  store float %.11, ptr addrspace(1) %.14.at, align 4
  br label %if.4.end
if.4.end:
  ret void
}

declare i32 @llvm.amdgcn.workgroup.id.x()
declare i32 @llvm.amdgcn.workitem.id.x()

attributes #0 = { nounwind "uniform-work-group-size"="true" "amdgpu-implicitarg-num-bytes"="0" "amdgpu-no-implicitarg-ptr" "amdgpu-no-dispatch-ptr" "amdgpu-no-dispatch-id" "amdgpu-no-queue-ptr" "amdgpu-no-hostcall-ptr" "amdgpu-no-multigrid-sync-arg" "amdgpu-no-heap-ptr" "amdgpu-no-default-queue" "amdgpu-no-completion-action" }
attributes #1 = { nounwind readnone willreturn }
